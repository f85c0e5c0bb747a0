#include "chess/lines.h"

#include "chess/slider_lookup.h"
#include "chess/sliders_titboard.h"

namespace tahl {
namespace {

void list_moves(Square from, Bitboard targets, std::uint16_t (&moves)[8]) {
  int n = 0;
  while (targets) moves[n++] = Move(from, pop_square(targets)).bits();
}

}  // namespace

LineTables::LineTables() {
  for (Square s = 0; s < 64; ++s) {
    for (int axis = 0; axis < 4; ++axis) {
      Line& l = line[s][axis];
      l.mask = axis_mask(s, static_cast<Axis>(axis));
      list_moves(s, l.mask, moves[s][axis]);
      const int below = popcount(l.mask & (bit(s) - 1));
      l.titboard = kTitboardTables.sets + TitboardTables::offset(popcount(l.mask), below);
    }
    squares[s] = s;
    list_moves(s, knight_steps(s), knight[s]);
    list_moves(s, king_steps(s), king[s]);
  }
  for (unsigned set = 0; set < 256; ++set) {
    int n = 0;
    for (std::uint8_t i = 0; i < 8; ++i) {
      if ((set >> i & 1) == 0) continue;
      compress[set][2 * n] = static_cast<std::uint8_t>(2 * i);
      compress[set][2 * n + 1] = static_cast<std::uint8_t>(2 * i + 1);
      ++n;
    }
  }
}

[[gnu::init_priority(102)]] const LineTables kLineTables;

}  // namespace tahl
