#include "search/static_eval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "chess/attacks.h"
#include "search/see.h"

namespace tahl::search {
namespace {

// Every number here was set by hand from what chess books teach; none was fitted.
struct Score {
  int middle = 0, end = 0;
  constexpr Score& operator+=(Score o) {
    middle += o.middle;
    end += o.end;
    return *this;
  }
  constexpr Score operator-(Score o) const { return {middle - o.middle, end - o.end}; }
  constexpr Score operator*(int n) const { return {middle * n, end * n}; }
};

constexpr Score kMaterial[] = {{90, 110}, {330, 310}, {340, 330}, {490, 540}, {970, 980}, {0, 0}};
constexpr Score kPassed[8] = {{0, 0},   {4, 10},   {6, 16},   {14, 32},
                              {30, 60}, {55, 100}, {85, 160}, {0, 0}};
constexpr Score kDoubled{-9, -18}, kIsolated{-12, -10}, kBishopPair{26, 45};
constexpr Score kOpenFile{22, 8}, kHalfOpenFile{10, 6};
constexpr int kPhase[] = {0, 1, 1, 2, 4, 0};  // 24 at the start of the game
constexpr int kFullPhase = 24;
constexpr int kTempo = 10;

constexpr int inward(int x) { return std::min(x, 7 - x); }  // 0 on the edge, 3 in the middle

// What a piece is worth more or less on a square; rank 0 is its own first.
constexpr Score square_score(PieceType type, int file, int rank) {
  const int centre = inward(file) + inward(rank);  // 0 in the corner, 6 in the middle
  switch (type) {
    case PieceType::Pawn: {
      constexpr int kMiddle[] = {0, 0, 2, 6, 14, 28, 45, 0}, kEnd[] = {0, 0, 4, 10, 22, 42, 70, 0};
      Score s{kMiddle[rank], kEnd[rank]};
      if (inward(file) == 3) s.middle += rank == 1 ? -14 : rank == 3 || rank == 4 ? 18 : 4;
      if (inward(file) == 2 && rank >= 3) s.middle += 7;
      return s;
    }
    case PieceType::Knight:
      return {8 * centre - 30 - (rank == 0 ? 6 : 0), 6 * centre - 24};
    case PieceType::Bishop:
      return {5 * centre - 14 - (rank == 0 ? 8 : 0), 4 * centre - 10};
    case PieceType::Rook:
      return {3 * inward(file) - 4 + (rank == 6 ? 14 : 0), rank == 6 ? 12 : 0};
    case PieceType::Queen:
      return {2 * centre - 6, 5 * centre - 14};
    case PieceType::King: {
      constexpr int kHome[] = {14, 30, 18, -6, -2, -10, 30, 16};  // castled is safe
      const int middle = rank == 0 ? kHome[file] : -20 - 18 * std::min(rank, 4);
      return {middle, 10 * centre - 30};
    }
    case PieceType::None:
      break;
  }
  return {};
}

constexpr auto kSquares = [] {
  std::array<std::array<Score, 64>, 6>
      table{};  // [type][square as White sees it], material included
  for (const PieceType t : kPieceTypes)
    for (int s = 0; s < 64; ++s) {
      Score score = square_score(t, s & 7, s >> 3);
      score += kMaterial[index(t)];
      table[static_cast<std::size_t>(index(t))][static_cast<std::size_t>(s)] = score;
    }
  return table;
}();

constexpr Bitboard adjacent_files(int file) {
  return (file > 0 ? file_mask(file - 1) : 0) | (file < 7 ? file_mask(file + 1) : 0);
}

// The squares before `s` as `c` walks, on its file and the two beside it.
Bitboard front_span(Color c, Square s) {
  const int rank = rank_of(s);
  const Bitboard files = file_mask(file_of(s)) | adjacent_files(file_of(s));
  if (c == Color::White) return rank == 7 ? 0 : files & (~Bitboard{0} << (8 * (rank + 1)));
  return files & ((Bitboard{1} << (8 * rank)) - 1);
}

Score pawn_structure(const Position& p, Color c) {
  const Bitboard own = p.pieces(c, PieceType::Pawn), enemy = p.pieces(~c, PieceType::Pawn);
  Score score;
  for (Bitboard b = own; b;) {
    const Square s = pop_square(b);
    const Bitboard file = file_mask(file_of(s));
    const Bitboard span = front_span(c, s);
    if (own & file & span) score += kDoubled;
    if (!(own & adjacent_files(file_of(s)))) score += kIsolated;
    if (!(enemy & span) && !(own & file & span)) score += kPassed[relative_rank(c, s)];
  }
  return score;
}

// Pawns before the king, and how open the files around him are. Middlegame only.
int king_shelter(const Position& p, Color c) {
  const Square king = p.king(c);
  const Bitboard pawns = p.pieces(c, PieceType::Pawn);
  const int centre = std::clamp(file_of(king), 1, 6);
  int score = 0;
  for (int file = centre - 1; file <= centre + 1; ++file) {
    const Bitboard before = pawns & file_mask(file) & (front_span(c, king) | king_attacks(king));
    if (!before) {
      score -= 14;
      continue;
    }
    const Square nearest = c == Color::White ? first_square(before)
                                             : static_cast<Square>(63 - std::countl_zero(before));
    score +=
        std::max(0, 14 - 6 * std::max(0, relative_rank(c, nearest) - relative_rank(c, king) - 1));
  }
  return score;
}

// Mobility, files and the pressure on the enemy king of everything but pawns and kings.
Score pieces_score(const Position& p, Color c) {
  const Bitboard occupied = p.occupied(), own = p.pieces(c);
  const Bitboard own_pawns = p.pieces(c, PieceType::Pawn);
  const Bitboard enemy_pawns = p.pieces(~c, PieceType::Pawn);
  const Bitboard safe = ~own & ~pawns_attack(~c, enemy_pawns);
  const Bitboard king_zone = king_attacks(p.king(~c));
  Score score;
  int attackers = 0, pressure = 0;
  const auto reach = [&](Bitboard attacks, int weight) {
    if (const Bitboard near = attacks & king_zone) {
      ++attackers;
      pressure += weight * popcount(near);
    }
    return popcount(attacks & safe);
  };
  for (Bitboard b = p.pieces(c, PieceType::Knight); b;) {
    score += Score{4, 4} * (reach(knight_attacks(pop_square(b)), 3) - 4);
  }
  for (Bitboard b = p.pieces(c, PieceType::Bishop); b;) {
    score += Score{4, 4} * (reach(bishop_attacks(pop_square(b), occupied), 3) - 6);
  }
  for (Bitboard b = p.pieces(c, PieceType::Rook); b;) {
    const Square s = pop_square(b);
    score += Score{2, 4} * (reach(rook_attacks(s, occupied), 4) - 7);
    const Bitboard file = file_mask(file_of(s));
    if (!(own_pawns & file)) score += enemy_pawns & file ? kHalfOpenFile : kOpenFile;
  }
  for (Bitboard b = p.pieces(c, PieceType::Queen); b;) {
    score += Score{1, 2} * (reach(queen_attacks(pop_square(b), occupied), 6) - 13);
  }
  if (popcount(p.pieces(c, PieceType::Bishop)) >= 2) score += kBishopPair;
  if (attackers >= 2) score.middle += pressure * attackers;  // one attacker alone does not mate
  return score;
}

// With a won endgame and no pawn to push: drive the bare side's king to the edge and bring ours
// near.
int mop_up(const Position& p, Color winner) {
  const Square loser = p.king(~winner), king = p.king(winner);
  const int distance =
      std::abs(file_of(loser) - file_of(king)) + std::abs(rank_of(loser) - rank_of(king));
  return 14 * (6 - inward(file_of(loser)) - inward(rank_of(loser))) + 6 * (14 - distance);
}

}  // namespace

int material(const Position& p, Color c) {
  int sum = 0;
  for (const PieceType t : kPieceTypes) sum += popcount(p.pieces(c, t)) * piece_value(t);
  return sum;
}

int static_eval(const Position& p) {
  Score by_color[2];
  int phase = 0;
  for (const Color c : {Color::White, Color::Black}) {
    Score& score = by_color[index(c)];
    const int flip = c == Color::White ? 0 : 56;
    for (const PieceType t : kPieceTypes) {
      for (Bitboard b = p.pieces(c, t); b;) {
        score += kSquares[static_cast<std::size_t>(index(t))]
                         [static_cast<std::size_t>(pop_square(b) ^ flip)];
        phase += kPhase[index(t)];
      }
    }
    score += pawn_structure(p, c);
    score += pieces_score(p, c);
    score.middle += king_shelter(p, c);
  }
  const Color us = p.side_to_move();
  const Score balance = by_color[index(us)] - by_color[index(~us)];
  phase = std::min(phase, kFullPhase);
  int score = (balance.middle * phase + balance.end * (kFullPhase - phase)) / kFullPhase;

  const Color better = score >= 0 ? us : ~us;
  if (!p.pieces(better, PieceType::Pawn)) {
    const int lead = material(p, better) - material(p, ~better);
    if (lead < 400) {
      score /= 4;  // a minor piece more does not mate
    } else if (!p.pieces(~better, PieceType::Pawn)) {
      score += (better == us ? 1 : -1) * mop_up(p, better);
    }
  }
  return score + kTempo;
}

double expected_result(int centipawns) { return 2 / (1 + std::pow(10., -centipawns / 400.)) - 1; }

}  // namespace tahl::search
