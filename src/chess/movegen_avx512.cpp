#include "chess/movegen_impl.h"

namespace tahl {

constinit const MovegenTable kMovegenAvx512 = {
    "AVX-512", backend_of<Titboard>(), backend_of<Pext>(), backend_of<Magic>(), best_backend()};

}  // namespace tahl
