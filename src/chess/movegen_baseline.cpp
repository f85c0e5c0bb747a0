#include "chess/movegen_impl.h"

namespace tahl {

constinit const MovegenTable kMovegenBaseline = {
    "baseline", {}, {}, backend_of<Magic>(), backend_of<Magic>()};

}  // namespace tahl
