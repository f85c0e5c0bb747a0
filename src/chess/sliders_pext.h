#pragma once

#ifdef __BMI2__
#include <immintrin.h>
#endif

#include <array>
#include <vector>

#include "chess/slider_lookup.h"

namespace tahl {

#ifdef __BMI2__
// PEXT bitboards: the bits of the occupancy that matter, packed by one instruction, are the index.
struct Pext : AttackLookupSliders<Pext> {
  struct Entry {
    Bitboard mask = 0;
    const Bitboard* attacks = nullptr;
    Bitboard operator()(Bitboard occupied) const { return attacks[_pext_u64(occupied, mask)]; }
  };
  struct Tables {
    std::array<Entry, 64> bishop, rook;
    std::vector<Bitboard> storage;
    Tables();
  };
  static const Tables kTables;

  static Bitboard bishop_attacks(Square s, Bitboard occupied) {
    return kTables.bishop[s](occupied);
  }
  static Bitboard rook_attacks(Square s, Bitboard occupied) { return kTables.rook[s](occupied); }
};
#endif

}  // namespace tahl
