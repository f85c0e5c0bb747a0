#include "nn/policy_map.h"

#include "chess/types.h"

namespace tahl::nn {
namespace {

Square in_frame(Square s, Color mover) { return mover == Color::White ? s : mirror_rank(s); }

struct CastlingTargets {
  Square king, rook;
};
CastlingTargets castling_targets(Move m) {
  const bool kingside = m.to() > m.from();
  const int rank = rank_of(m.from());
  return {make_square(kingside ? 6 : 2, rank), make_square(kingside ? 5 : 3, rank)};
}

}  // namespace

std::string_view to_string(PolicyHead head) {
  return head == PolicyHead::FromTo4096 ? "fromto4096" : "planes12";
}

Expected<PolicyHead> parse_policy_head(std::string_view name) {
  if (name == "fromto4096") return PolicyHead::FromTo4096;
  if (name == "planes12") return PolicyHead::Planes12;
  return fail("policy head {} is none of fromto4096, planes12", quoted(name));
}

int policy_outputs(PolicyHead head) { return head == PolicyHead::FromTo4096 ? 4096 : 12 * 64; }

std::optional<int> fromto_index(const Position& position, Move m) {
  if (m.is_promotion() && m.promotion() != PieceType::Queen) return std::nullopt;
  const Color mover = position.side_to_move();
  const Square to = m.is_castling() ? castling_targets(m).king : m.to();
  return in_frame(m.from(), mover) * 64 + in_frame(to, mover);
}

PolicyTerms policy_terms(PolicyHead head, const Position& position, Move m) {
  PolicyTerms terms;
  const auto add = [&terms](int output, int sign) {
    const auto i = static_cast<std::size_t>(terms.count++);
    terms.output[i] = static_cast<std::uint16_t>(output);
    terms.sign[i] = static_cast<std::int8_t>(sign);
  };
  if (head == PolicyHead::FromTo4096) {
    if (const auto i = fromto_index(position, m)) add(*i, +1);
    return terms;
  }
  const Color mover = position.side_to_move();
  const auto z = [mover](bool ours, PieceType t, Square s) {
    return (index(t) + (ours ? 0 : 6)) * 64 + in_frame(s, mover);
  };
  if (m.is_castling()) {
    // In Chess960 a man may stay where he is: his two terms then cancel.
    const CastlingTargets targets = castling_targets(m);
    add(z(true, PieceType::King, targets.king), +1);
    add(z(true, PieceType::King, m.from()), -1);
    add(z(true, PieceType::Rook, targets.rook), +1);
    add(z(true, PieceType::Rook, m.to()), -1);
    return terms;
  }
  const PieceType moved = position.type_on(m.from());
  add(z(true, m.is_promotion() ? m.promotion() : moved, m.to()), +1);
  add(z(true, moved, m.from()), -1);
  const Square captured = m.is_en_passant() ? static_cast<Square>(m.to() ^ 8) : m.to();
  if (const PieceType t = position.type_on(captured); t != PieceType::None)
    add(z(false, t, captured), -1);
  return terms;
}

std::optional<float> policy_logit(PolicyHead head, const Position& position, Move m,
                                  std::span<const float> outputs) {
  const PolicyTerms terms = policy_terms(head, position, m);
  if (terms.count == 0) return std::nullopt;
  return terms.sum(outputs.data());
}

}  // namespace tahl::nn
