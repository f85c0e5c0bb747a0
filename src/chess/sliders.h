#pragma once

// Slider back ends. Each is a struct of static functions with the same shape, for a bishop and for
// a rook, and the move generator is a template over it:
//
//   Bitboard bishop_moves(Square from, Bitboard own, Bitboard enemy)         where it can go
//   int count_bishop(Square from, Bitboard own, Bitboard enemy)              how many squares
//   Move* write_bishop(Square from, Bitboard own, Bitboard enemy, Move* out) the moves, written
//
// `own` holds the slider itself. `write` exists because a back end may know how to write moves
// without a bitscan; it returns the end of the moves and may scribble on the kWriterSlack
// (chess/lines.h) after it. Back ends that look up attacks by occupancy (magic, PEXT) also offer
// bishop_attacks and rook_attacks(Square, Bitboard occupied), which checks and pins use in every
// build.

#include "chess/sliders_magic.h"
#include "chess/sliders_pext.h"
#include "chess/sliders_titboard.h"
#include "chess/types.h"

namespace tahl {

#ifdef __BMI2__
using AttackSliders = Pext;
#else
using AttackSliders = Magic;
#endif

}  // namespace tahl
