#include "chess/movegen_impl.h"

namespace tahl {

// In a build that targets a newer processor anyway this is the same code once more.
constinit const MovegenTable kMovegenBaseline = {
    "baseline", {}, {}, backend_of<Magic>(), best_backend()};

}  // namespace tahl
