#include "chess/movegen_impl.h"

namespace tahl {

constinit const MovegenTable kMovegenAvx2 = {
    "AVX2",
    backend_of<Titboard>(),
    backend_of<Pext>(),
    backend_of<Magic>(),
    {legal_moves_of<Titboard>, perft_counted_of<NoSliders, Titboard>, perft_made_of<Titboard>}};

}  // namespace tahl
