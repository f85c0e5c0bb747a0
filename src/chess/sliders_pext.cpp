#include "chess/sliders_pext.h"

namespace tahl {

PextTables::PextTables() {
  Bitboard* next = storage;
  const auto fill = [&next](Entry& entry, Square s, Bitboard mask, auto attacks) {
    entry = {mask, next};
    Bitboard occupied = 0;
    do {  // every subset of the mask, in the order of its packed bits
      *next++ = attacks(s, occupied);
      occupied = (occupied - mask) & mask;
    } while (occupied != 0);
  };
  for (Square s = 0; s < 64; ++s) {
    fill(bishop[s], s, bishop_mask(s), bishop_attacks_by_lines);
    fill(rook[s], s, rook_mask(s), rook_attacks_by_lines);
  }
  assert(next == storage + kOccupancySubsets);
}

[[gnu::init_priority(102)]] const PextTables kPextTables;

}  // namespace tahl
