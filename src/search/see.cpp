#include "search/see.h"

#include <algorithm>

#include "chess/attacks.h"

namespace tahl::search {

int static_exchange(const Position& p, Move m) {
  if (m.is_castling()) return 0;
  const Square to = m.to();
  Bitboard occupied = p.occupied() ^ bit(m.from());
  int gain[34];
  int n = 0;
  gain[0] = m.is_en_passant() ? piece_value(PieceType::Pawn) : piece_value(p.type_on(to));
  int standing = piece_value(p.type_on(m.from()));  // what the next capture would win
  if (m.is_en_passant()) occupied ^= bit(static_cast<Square>(to ^ 8));
  if (m.is_promotion()) {
    standing = piece_value(m.promotion());
    gain[0] += standing - piece_value(PieceType::Pawn);
  }
  Color side = ~p.side_to_move();
  while (true) {
    // Recomputed with the pieces that left, so that X-rays join in.
    const Bitboard attackers = p.attackers_to(to, occupied) & occupied & ~bit(to);
    const Bitboard ours = attackers & p.pieces(side);
    if (!ours || n == 32) break;
    PieceType least = PieceType::King;
    for (const PieceType t : kPieceTypes) {
      if (ours & p.pieces(t)) {
        least = t;
        break;
      }
    }
    // A king may not step into check.
    if (least == PieceType::King && (attackers & p.pieces(~side))) break;
    ++n;
    gain[n] = standing - gain[n - 1];
    standing = piece_value(least);
    occupied ^= bit(first_square(ours & p.pieces(least)));
    side = ~side;
  }
  for (; n > 0; --n) gain[n - 1] = -std::max(-gain[n - 1], gain[n]);
  return gain[0];
}

}  // namespace tahl::search
