#pragma once

#include "chess/slider_lookup.h"

namespace tahl {

// Magic bitboards: a multiplication carries the bits of the occupancy that matter to the top of the
// word. The factors in sliders_magic.cpp were found by trial of sparse random numbers.
struct MagicTables {
  struct Entry {
    Bitboard mask = 0;
    Bitboard magic = 0;
    const Bitboard* attacks = nullptr;
    unsigned shift = 0;
    TAHL_INLINE Bitboard operator()(Bitboard occupied) const {
      return attacks[((occupied & mask) * magic) >> shift];
    }
  };
  Entry bishop[64], rook[64];
  alignas(64) Bitboard storage[kOccupancySubsets]{};  // 841 KB
  MagicTables();
};
extern const MagicTables kMagicTables;

inline namespace TAHL_ISA {

struct Magic : AttackLookupSliders<Magic> {
  TAHL_INLINE static Bitboard bishop_attacks(Square s, Bitboard occupied) {
    return kMagicTables.bishop[s](occupied);
  }
  TAHL_INLINE static Bitboard rook_attacks(Square s, Bitboard occupied) {
    return kMagicTables.rook[s](occupied);
  }
};

}  // namespace TAHL_ISA
}  // namespace tahl
