#pragma once

#include <array>
#include <vector>

#include "chess/slider_lookup.h"

namespace tahl {

// Magic bitboards: a multiplication carries the bits of the occupancy that matter to the top of the
// word. The factors in sliders_magic.cpp were found by trial of sparse random numbers.
struct Magic : AttackLookupSliders<Magic> {
  struct Entry {
    Bitboard mask = 0;
    Bitboard magic = 0;
    const Bitboard* attacks = nullptr;
    unsigned shift = 0;
    Bitboard operator()(Bitboard occupied) const {
      return attacks[((occupied & mask) * magic) >> shift];
    }
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

}  // namespace tahl
