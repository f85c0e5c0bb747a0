#include "chess/sliders_pext.h"

namespace tahl {
#ifdef __BMI2__

Pext::Tables::Tables() {
  std::size_t size = 0;
  for (Square s = 0; s < 64; ++s) {
    size += std::size_t{1} << popcount(bishop_mask(s));
    size += std::size_t{1} << popcount(rook_mask(s));
  }
  storage.resize(size);
  Bitboard* next = storage.data();
  const auto fill = [&next](Entry& entry, Square s, Bitboard mask, auto slow_attacks) {
    entry = {mask, next};
    const Bitboard n = Bitboard{1} << popcount(mask);
    for (Bitboard i = 0; i < n; ++i) *next++ = slow_attacks(s, _pdep_u64(i, mask));
  };
  for (Square s = 0; s < 64; ++s) {
    fill(bishop[s], s, bishop_mask(s), slow_bishop_attacks);
    fill(rook[s], s, rook_mask(s), slow_rook_attacks);
  }
}

const Pext::Tables Pext::kTables;

#endif
}  // namespace tahl
