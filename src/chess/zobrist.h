#pragma once

#include "chess/types.h"

namespace tahl {

// Random numbers whose exclusive or is a position's key (Zobrist 1970). The same in every run and
// build.
struct ZobristKeys {
  Key piece[16][64]{};   // [piece code of Position][square]; zeros for the empty square's code
  Key castling[4][8]{};  // [castling slot of Position][file of the rook]
  Key en_passant[8]{};   // [file]
  Key black_to_move = 0;
};
extern const ZobristKeys kZobrist;

}  // namespace tahl
