#include "nn/policy_map.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "chess/types.h"

namespace tahl::nn {
namespace {

struct Name {
  PolicyHead head;
  std::string_view name;
  int outputs;
};
constexpr Name kHeads[] = {
    {PolicyHead::FromTo4096, "fromto4096", 4096},
    {PolicyHead::Planes12, "planes12", 12 * 64},
    {PolicyHead::Moves1858, "moves1858", 1858},
    {PolicyHead::Planes73, "planes73", 73 * 64},
    {PolicyHead::Attention4288, "attention4288", 64 * 64 + 8 * 24},
};

struct CastlingTargets {
  Square king, rook;
};
CastlingTargets castling_targets(Move m) {
  const bool kingside = m.to() > m.from();
  const int rank = rank_of(m.from());
  return {make_square(kingside ? 6 : 2, rank), make_square(kingside ? 5 : 3, rank)};
}

// Queen, rook, bishop as lc0 counts them; the knight has no output of its own.
int promotion_rank(PieceType promotion) {
  return promotion == PieceType::Queen ? 0 : promotion == PieceType::Rook ? 1 : 2;
}
bool has_own_output(PieceType promotion) {
  return promotion != PieceType::None && promotion != PieceType::Knight;
}

// lc0's list of moves: by from, then to; after them promotions, by from, to, queen, rook, bishop.
struct MoveTable {
  std::array<std::array<std::int16_t, 64>, 64> plain;
  std::array<std::array<std::int16_t, 8>, 8> promotion;  // [file from][file to]: of the queen

  MoveTable() {
    std::int16_t next = 0;
    for (Square from = 0; from < 64; ++from) {
      for (Square to = 0; to < 64; ++to) {
        const int files = std::abs(file_of(to) - file_of(from));
        const int ranks = std::abs(rank_of(to) - rank_of(from));
        const bool queen = files == ranks || files == 0 || ranks == 0;
        const bool knight = files * ranks == 2;
        plain[from][to] = from != to && (queen || knight) ? next++ : std::int16_t{-1};
      }
    }
    for (std::size_t from = 0; from < 8; ++from) {
      for (std::size_t to = 0; to < 8; ++to) {
        promotion[from][to] = -1;
        if (from > to + 1 || to > from + 1) continue;
        promotion[from][to] = next;
        next = static_cast<std::int16_t>(next + 3);
      }
    }
  }
};

}  // namespace

int moves1858_index(Square from, Square to, PieceType promotion) {
  static const MoveTable table;
  if (!has_own_output(promotion)) return table.plain[from][to];
  return table.promotion[static_cast<std::size_t>(file_of(from))]
                        [static_cast<std::size_t>(file_of(to))] +
         promotion_rank(promotion);
}

// Planes 0-55: eight directions, clockwise from north, of seven distances each. 56-63: the knight's
// eight jumps, clockwise from north-north-east. 64-72: promotions to the west, north and east, of
// rook, bishop and queen each.
int planes73_index(Square from, Square to, PieceType promotion) {
  const int east = file_of(to) - file_of(from), north = rank_of(to) - rank_of(from);
  if (has_own_output(promotion)) {
    const int piece = (promotion_rank(promotion) + 2) % 3;
    return (64 + (east + 1) * 3 + piece) * 64 + from;
  }
  if (std::abs(east * north) == 2) {
    constexpr int kJumps[8][2] = {{1, 2},   {2, 1},   {2, -1}, {1, -2},
                                  {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}};
    int jump = 0;
    while (kJumps[jump][0] != east || kJumps[jump][1] != north) ++jump;
    return (56 + jump) * 64 + from;
  }
  constexpr int kDirections[3][3] = {{5, 4, 3}, {6, -1, 2}, {7, 0, 1}};  // [north][east], -1 to 1
  const auto sign = [](int x) { return (x > 0) - (x < 0); };
  const int distance = std::max(std::abs(east), std::abs(north));
  return (kDirections[sign(north) + 1][sign(east) + 1] * 7 + distance - 1) * 64 + from;
}

int attention4288_index(Square from, Square to, PieceType promotion) {
  if (!has_own_output(promotion)) return from * 64 + to;
  return 64 * 64 + 24 * file_of(from) + 3 * file_of(to) + promotion_rank(promotion);
}

std::string_view to_string(PolicyHead head) { return kHeads[static_cast<std::size_t>(head)].name; }

Expected<PolicyHead> parse_policy_head(std::string_view name) {
  std::string names;
  for (const Name& known : kHeads) {
    if (known.name == name) return known.head;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  return fail("policy head {} is none of {}", quoted(name), names);
}

int policy_outputs(PolicyHead head) { return kHeads[static_cast<std::size_t>(head)].outputs; }

std::optional<int> fromto_index(const Position& position, Move m) {
  const PolicyTerms terms =
      policy_terms(PolicyHead::FromTo4096, position, m, mover_frame(position));
  return terms.count == 0 ? std::nullopt : std::optional<int>(terms.output[0]);
}

PolicyTerms policy_terms(PolicyHead head, const Position& position, Move m, Frame frame) {
  PolicyTerms terms;
  const auto add = [&terms](int output, int sign) {
    const auto i = static_cast<std::size_t>(terms.count++);
    terms.output[i] = static_cast<std::uint16_t>(output);
    terms.sign[i] = static_cast<std::int8_t>(sign);
  };
  const Square from = frame(m.from()), to = frame(m.to());
  switch (head) {
    case PolicyHead::FromTo4096:
      if (m.is_promotion() && m.promotion() != PieceType::Queen) return terms;
      add(from * 64 + (m.is_castling() ? frame(castling_targets(m).king) : to), +1);
      return terms;
    case PolicyHead::Moves1858:
      add(moves1858_index(from, to, m.promotion()), +1);
      return terms;
    case PolicyHead::Planes73:
      add(planes73_index(from, to, m.promotion()), +1);
      return terms;
    case PolicyHead::Attention4288:
      add(attention4288_index(from, to, m.promotion()), +1);
      return terms;
    case PolicyHead::Planes12:
      break;
  }
  const auto z = [frame](bool ours, PieceType t, Square s) {
    return (index(t) + (ours ? 0 : 6)) * 64 + frame(s);
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
