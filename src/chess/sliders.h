#pragma once

// Slider back ends. Each is a struct of static functions with the same shape, and the move
// generator is a template over it:
//
//   Bitboard bishop_moves(Square from, Bitboard own, Bitboard enemy)   squares it can move to
//   Bitboard rook_moves(Square from, Bitboard own, Bitboard enemy)
//   void append_bishop(Square from, Bitboard own, Bitboard enemy, Bitboard mask, MoveList& out)
//   void append_rook(...)                                              moves to squares in `mask`,
//   written
//
// `append` exists because a back end may know how to write moves without a bitscan. Back ends that
// look up attacks by occupancy (magic, PEXT) also offer bishop_attacks and rook_attacks(Square,
// Bitboard occupied), which checks and pins use in every build.

#include "chess/sliders_magic.h"
#include "chess/sliders_pext.h"
#include "chess/types.h"

namespace tahl {

#if defined(TAHL_SLIDERS_MAGIC) || !defined(__BMI2__)
using AttackSliders = Magic;
#else
using AttackSliders = Pext;
#endif
using DefaultSliders = AttackSliders;

}  // namespace tahl
