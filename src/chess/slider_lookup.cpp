#include "chess/slider_lookup.h"

#include "chess/attacks.h"

namespace tahl {

Bitboard steps(Square s, std::initializer_list<std::pair<int, int>> offsets) {
  Bitboard result = 0;
  for (const auto& [df, dr] : offsets) {
    const int f = file_of(s) + df, r = rank_of(s) + dr;
    if (f >= 0 && f < 8 && r >= 0 && r < 8) result |= bit(make_square(f, r));
  }
  return result;
}

Bitboard knight_steps(Square s) {
  return steps(s, {{-2, -1}, {-2, 1}, {-1, -2}, {-1, 2}, {1, -2}, {1, 2}, {2, -1}, {2, 1}});
}

Bitboard king_steps(Square s) {
  return steps(s, {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}});
}

Bitboard ray(Square s, int file_step, int rank_step, Bitboard occupied) {
  Bitboard result = 0;
  int f = file_of(s) + file_step, r = rank_of(s) + rank_step;
  for (; f >= 0 && f < 8 && r >= 0 && r < 8; f += file_step, r += rank_step) {
    const Bitboard here = bit(make_square(f, r));
    result |= here;
    if (occupied & here) break;
  }
  return result;
}

Bitboard axis_mask(Square s, Axis axis) {
  constexpr int kStep[4][2] = {{1, 0}, {0, 1}, {1, 1}, {-1, 1}};  // file, rank
  const auto [df, dr] = kStep[static_cast<int>(axis)];
  return ray(s, df, dr, /*occupied=*/0) | ray(s, -df, -dr, /*occupied=*/0);
}

Bitboard slow_bishop_attacks(Square s, Bitboard occupied) {
  return ray(s, 1, 1, occupied) | ray(s, 1, -1, occupied) | ray(s, -1, 1, occupied) |
         ray(s, -1, -1, occupied);
}

Bitboard slow_rook_attacks(Square s, Bitboard occupied) {
  return ray(s, 1, 0, occupied) | ray(s, -1, 0, occupied) | ray(s, 0, 1, occupied) |
         ray(s, 0, -1, occupied);
}

namespace {

// Needs kAttackTables, which are there before the other tables (attacks.h).
Bitboard attacks_by_lines(Square s, Axis first, Axis second, Bitboard occupied) {
  const auto on_line = [&](Axis axis) {
    const Bitboard line = kAttackTables.axes[s][static_cast<int>(axis)];
    const Bitboard below = occupied & line & (bit(s) - 1), above = occupied & line & ~(bit(s) - 1);
    const Bitboard nearest_below = bit(static_cast<Square>(63 - std::countl_zero(below | 1)));
    const Bitboard nearest_above = above & (~above + 1);
    return line & (2 * nearest_above - nearest_below);
  };
  return on_line(first) | on_line(second);
}

}  // namespace

Bitboard bishop_attacks_by_lines(Square s, Bitboard occupied) {
  return attacks_by_lines(s, Axis::Diagonal, Axis::Antidiagonal, occupied);
}

Bitboard rook_attacks_by_lines(Square s, Bitboard occupied) {
  return attacks_by_lines(s, Axis::Rank, Axis::File, occupied);
}

Bitboard bishop_mask(Square s) {
  const Bitboard edge = kRank1 | kRank8 | kFileA | kFileH;
  return slow_bishop_attacks(s, 0) & ~edge;
}

Bitboard rook_mask(Square s) {
  const Bitboard ranks = (kRank1 | kRank8) & ~rank_mask(rank_of(s));
  const Bitboard files = (kFileA | kFileH) & ~file_mask(file_of(s));
  return slow_rook_attacks(s, 0) & ~(ranks | files);
}

}  // namespace tahl
