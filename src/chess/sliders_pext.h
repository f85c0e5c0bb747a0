#pragma once

#ifdef __BMI2__
#include <immintrin.h>
#endif

#include "chess/slider_lookup.h"

namespace tahl {

// PEXT bitboards: the bits of the occupancy that matter, packed by one instruction, are the index.
struct PextTables {
  struct Entry {
    Bitboard mask = 0;
    const Bitboard* attacks = nullptr;
  };
  Entry bishop[64], rook[64];
  alignas(64) Bitboard storage[kOccupancySubsets]{};  // 841 KB
  PextTables();
};
extern const PextTables kPextTables;

inline namespace TAHL_ISA {

#ifdef __BMI2__
struct Pext : AttackLookupSliders<Pext> {
  TAHL_INLINE static Bitboard bishop_attacks(Square s, Bitboard occupied) {
    const PextTables::Entry& entry = kPextTables.bishop[s];
    return entry.attacks[_pext_u64(occupied, entry.mask)];
  }
  TAHL_INLINE static Bitboard rook_attacks(Square s, Bitboard occupied) {
    const PextTables::Entry& entry = kPextTables.rook[s];
    return entry.attacks[_pext_u64(occupied, entry.mask)];
  }
};
#endif

}  // namespace TAHL_ISA
}  // namespace tahl
