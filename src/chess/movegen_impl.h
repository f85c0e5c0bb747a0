// The generator, included once by each movegen_<instruction set>.cpp. Everything here is local to
// that file: nothing may be shared with the copy for another processor.

#include <type_traits>

#include "chess/attacks.h"
#include "chess/lines.h"
#include "chess/make_move.h"
#include "chess/movegen.h"
#include "chess/movegen_table.h"
#include "chess/sliders.h"
#ifdef __AVX2__
#include "chess/setwise.h"
#endif

namespace tahl {
namespace {

// The men by what the generator asks, `Us` to move. Queens are both diagonal and straight.
template <Color Us>
struct Men {
  Bitboard own, enemy, occupied;
  Bitboard pawns, knights, diagonal, straight;  // ours
  Bitboard their_pawns, their_knights, their_diagonal, their_straight;
  Square king, their_king;

  TAHL_INLINE explicit Men(const Position& p) {
    constexpr Color kThem = ~Us;
    own = p.pieces(Us);
    enemy = p.pieces(kThem);
    occupied = p.occupied();
    pawns = p.pieces(PieceType::Pawn) & own;
    their_pawns = p.pieces(PieceType::Pawn) & enemy;
    knights = p.pieces(PieceType::Knight) & own;
    their_knights = p.pieces(PieceType::Knight) & enemy;
    diagonal = p.diagonal_sliders() & own;
    their_diagonal = p.diagonal_sliders() & enemy;
    straight = p.straight_sliders() & own;
    their_straight = p.straight_sliders() & enemy;
    king = first_square(p.pieces(PieceType::King) & own);
    their_king = first_square(p.pieces(PieceType::King) & enemy);
  }
};

// What limits the moves.
struct Limits {
  Bitboard attacked;  // by the enemy, who sees through our king
  Bitboard checkers;
  Bitboard evasion;  // squares that answer a check, if there is one and only one; else all
  Bitboard pinned;   // own men that may only move along the line through them and our king
};

template <Color Us>
TAHL_INLINE Bitboard short_checkers(const Men<Us>& men) {
  return (pawn_attacks(Us, men.king) & men.their_pawns) |
         (knight_attacks(men.king) & men.their_knights);
}

// Slider by slider: the cheaper way where there are few.
template <Color Us>
TAHL_INLINE Limits find_limits_by_lookup(const Men<Us>& men) {
  Limits limits{pawns_attack(~Us, men.their_pawns) | king_attacks(men.their_king),
                short_checkers(men), ~Bitboard{0}, 0};
  const Bitboard without_king = men.occupied ^ bit(men.king);
  for (Bitboard b = men.their_knights; b;) limits.attacked |= knight_attacks(pop_square(b));
  for (Bitboard b = men.their_diagonal; b;)
    limits.attacked |= bishop_attacks(pop_square(b), without_king);
  for (Bitboard b = men.their_straight; b;)
    limits.attacked |= rook_attacks(pop_square(b), without_king);
  // Enemy sliders that would see the king if our own men were not there: checkers, or pinners.
  Bitboard snipers = (bishop_attacks(men.king, men.enemy) & men.their_diagonal) |
                     (rook_attacks(men.king, men.enemy) & men.their_straight);
  while (snipers) {
    const Square sniper = pop_square(snipers);
    const Bitboard ours = between(men.king, sniper) & men.own;
    if (ours == 0) {
      limits.checkers |= bit(sniper);
    } else if (!more_than_one(ours)) {
      limits.pinned |= ours;
    }
  }
  if (limits.checkers != 0)
    limits.evasion = between(men.king, first_square(limits.checkers)) | limits.checkers;
  return limits;
}

#ifdef __AVX2__

// All of it from the rays in eight directions, without a branch but for positions with a check or a
// pin.
template <Color Us>
class Rays {
 public:
  Limits limits;
  bool is_quiet;  // no check and no pin; limits has then only `attacked` to say

  TAHL_INLINE Rays(const Position& p, const Men<Us>& men) : fill_(occupied_of(p)) {
    const Lanes bit0 = all_lanes_at(p.planes()[0]), bit1 = all_lanes_at(p.planes()[1]);
    const Lanes bit2 = all_lanes_at(p.planes()[2]), black = all_lanes_at(p.planes()[3]);
    const Lanes white = and_not(occupied_of(p), black);
    own_ = Us == Color::White ? white : black;
    const Lanes enemy = Us == Color::White ? black : white;
    const Lanes king = bit0 & bit2 & own_;
    const Lanes sliders = and_not(sliders_by_axis(p.planes()), bit0);
    sliders_ = sliders & own_;

    const Rays8 theirs = fill_.rays(sliders & enemy), kings = fill_.rays(king);
    // Where a ray of theirs meets the king's ray from the other end: the man between them, who is
    // pinned if he is ours; or, if there is none, all squares between.
    pins_ = meeting(kings, theirs) & own_;
    const Rays8 on_king = theirs & king;
    const Bitboard short_checks = short_checkers(men);
    limits = {0, short_checks, ~Bitboard{0}, 0};
    is_quiet = is_empty(pins_ | any(on_king)) & (short_checks == 0);
    if (!is_quiet) [[unlikely]] {
      // A ray that comes down to the king is a check along the king's own ray up.
      const Bitboard check_rays = union_of(where_opposite(on_king, kings));
      limits.checkers |= check_rays & men.enemy;
      if (limits.checkers != 0) limits.evasion = check_rays | short_checks;
      limits.pinned = union_of(pins_);
    }
    // Attacks, one step on behind our king too.
    const Rays8 far = theirs | step(on_king) | knight_steps8(bit0 & bit1 & enemy);
    limits.attacked =
        union_of(any(far)) | pawns_attack(~Us, men.their_pawns) | king_attacks(men.their_king);
  }

  // The moves of bishops, rooks and queens. In one direction no two of them reach the same square,
  // so the sizes of eight sets of rays are their number.
  TAHL_INLINE int count_quiet_sliders() const {
    return population(and_not(fill_.rays(sliders_), own_));
  }
  TAHL_INLINE int count_sliders() const {
    // A pinned man keeps to his axis, and never answers a check.
    const Lanes kept = limits.checkers != 0 ? all_lanes(0) : pins_;
    const Lanes held = and_not(all_lanes(limits.pinned), kept);
    return population(and_not(fill_.rays(and_not(sliders_, held)), own_) &
                      all_lanes(limits.evasion));
  }

 private:
  TAHL_INLINE static Lanes occupied_of(const Position& p) {
    return all_lanes_at(p.planes()[0]) | all_lanes_at(p.planes()[1]) | all_lanes_at(p.planes()[2]);
  }

  Fill fill_;
  Lanes own_;      // our men, in every lane
  Lanes sliders_;  // ours, each on the axes along which it moves
  Lanes pins_;     // pinned men, each on the axis of its pin
};

#endif

template <Color Us>
TAHL_INLINE Limits find_limits([[maybe_unused]] const Position& p, const Men<Us>& men) {
#ifdef __AVX2__
  return Rays<Us>(p, men).limits;
#else
  return find_limits_by_lookup(men);
#endif
}

// Pawn moves as sets of target squares, by what they came from.
struct PawnMoves {
  Bitboard one, two, west, east;  // one step, two, captures towards the a- and the h-file
};

template <Color Us>
TAHL_INLINE Bitboard forward(Bitboard b) {
  return Us == Color::White ? b << 8 : b >> 8;
}

template <Color Us>
TAHL_INLINE PawnMoves pawn_moves(const Men<Us>& men, const Limits& limits) {
  constexpr Bitboard kThirdRank = rank_mask(Us == Color::White ? 2 : 5);
  const Bitboard empty = ~men.occupied;
  Bitboard forwards = men.pawns, to_west = men.pawns, to_east = men.pawns;
  if (limits.pinned != 0) {  // a pinned pawn keeps to its axis
    const Bitboard(&axes)[4] = kAttackTables.axes[men.king];
    const Bitboard free = ~limits.pinned;
    const Bitboard rising = free | axes[static_cast<int>(Axis::Diagonal)];
    const Bitboard falling = free | axes[static_cast<int>(Axis::Antidiagonal)];
    forwards &= free | axes[static_cast<int>(Axis::File)];
    to_west &= Us == Color::White ? falling : rising;
    to_east &= Us == Color::White ? rising : falling;
  }
  PawnMoves moves;
  const Bitboard step = forward<Us>(forwards) & empty;
  moves.two = forward<Us>(step & kThirdRank) & empty & limits.evasion;
  moves.one = step & limits.evasion;
  const Bitboard prey = men.enemy & limits.evasion;
  moves.west = forward<Us>((to_west & ~kFileA) >> 1) & prey;
  moves.east = forward<Us>((to_east & ~kFileH) << 1) & prey;
  return moves;
}

// Calls f(from) for each en passant capture. Two men leave one line at once, so pins and checks are
// asked of the board afterwards.
template <Color Us, class F>
TAHL_INLINE void en_passant_captures(const Position& p, const Men<Us>& men, F f) {
  const Square to = p.en_passant_square();
  const Square captured = static_cast<Square>(to ^ 8);
  for (Bitboard b = pawn_attacks(~Us, to) & men.pawns; b;) {
    const Square from = pop_square(b);
    const Bitboard after = (men.occupied ^ bit(from) ^ bit(captured)) | bit(to);
    if ((bishop_attacks(men.king, after) & men.their_diagonal) == 0 &&
        (rook_attacks(men.king, after) & men.their_straight) == 0 &&
        (short_checkers(men) & ~bit(captured)) == 0)
      f(from);
  }
}

// Calls f(rook) for each way to castle. For Chess960 too: every square on the king's and the rook's
// way is free but for these two, the king's way is not attacked, and the rook did not shield the
// king's target. Precondition: not in check.
template <Color Us, class F>
TAHL_INLINE void castlings(const Position& p, const Men<Us>& men, const Limits& limits, F f) {
  if ((p.castling_men() & bit(men.king)) == 0) return;
  constexpr int kRank = Us == Color::White ? 0 : 7;
  constexpr Square kE = make_square(4, kRank), kA = make_square(0, kRank),
                   kH = make_square(7, kRank);
  const Square king_rook = p.castling_rook(Us, CastlingSide::King);
  const Square queen_rook = p.castling_rook(Us, CastlingSide::Queen);
  if (men.king == kE && (king_rook == kH || king_rook == kNoSquare) &&
      (queen_rook == kA || queen_rook == kNoSquare)) [[likely]] {
    constexpr Bitboard kFG = bit(kE) << 1 | bit(kE) << 2;
    constexpr Bitboard kCD = bit(kE) >> 1 | bit(kE) >> 2, kBCD = kCD | bit(kE) >> 3;
    if (king_rook != kNoSquare && ((men.occupied | limits.attacked) & kFG) == 0) f(kH);
    if (queen_rook != kNoSquare && (men.occupied & kBCD) == 0 && (limits.attacked & kCD) == 0)
      f(kA);
    return;
  }
  for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen}) {
    const Square rook = p.castling_rook(Us, side);
    if (rook == kNoSquare) continue;
    const Square king_to = make_square(side == CastlingSide::King ? 6 : 2, kRank);
    const Square rook_to = make_square(side == CastlingSide::King ? 5 : 3, kRank);
    const Bitboard king_path = between(men.king, king_to) | bit(king_to);
    const Bitboard rook_path = between(rook, rook_to) | bit(rook_to);
    const Bitboard others = men.occupied & ~bit(men.king) & ~bit(rook);
    if (((king_path | rook_path) & others) != 0 || (king_path & limits.attacked) != 0 ||
        (limits.pinned & bit(rook)) != 0)
      continue;
    f(rook);
  }
}

// ---- Writing moves ----

TAHL_INLINE Move* write_targets(Square from, Bitboard to, Move* out) {
  while (to) *out++ = Move(from, pop_square(to));
  return out;
}

TAHL_INLINE Move* write_knight(Square from, Bitboard target, Move* out) {
#ifdef __BMI2__
  return write_set(kLineTables.knight[from], _pext_u64(target, knight_attacks(from)), out);
#else
  return write_targets(from, knight_attacks(from) & target, out);
#endif
}

TAHL_INLINE Move* write_king(Square from, Bitboard target, Move* out) {
#ifdef __BMI2__
  return write_set(kLineTables.king[from], _pext_u64(target, king_attacks(from)), out);
#else
  return write_targets(from, king_attacks(from) & target, out);
#endif
}

// Up to eight moves, each from the square kStep before its target.
template <int kStep>
TAHL_INLINE Move* write_pawns(Bitboard to, Move* out) {
#ifdef TAHL_AVX512
  const __m128i squares = square_numbers(to);
  const __m128i from = _mm_sub_epi8(squares, _mm_set1_epi8(kStep));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi8(squares, from));
  return out + popcount(to);
#else
  while (to) {
    const Square s = pop_square(to);
    *out++ = Move(static_cast<Square>(s - kStep), s);
  }
  return out;
#endif
}

template <int kStep>
TAHL_INLINE Move* write_promotions(Bitboard to, Move* out) {
  while (to) {
    const Square s = pop_square(to);
    const Square from = static_cast<Square>(s - kStep);
    *out++ = Move(from, s, MoveKind::Promotion, PieceType::Queen);
    *out++ = Move(from, s, MoveKind::Promotion, PieceType::Rook);
    *out++ = Move(from, s, MoveKind::Promotion, PieceType::Bishop);
    *out++ = Move(from, s, MoveKind::Promotion, PieceType::Knight);
  }
  return out;
}

// Where the moves of one class end, in the order in which write_moves writes them.
struct Spans {
  const Move* king;
  const Move* pawn_steps;
  const Move* double_steps;
  const Move* pawn_captures;
  const Move* special;  // promotions, en passant and castling
  const Move* knights;
  const Move* sliders;
};

// Every legal move.
template <Color Us, class Sliders>
TAHL_INLINE Spans write_moves(const Position& p, Move* out) {
  const Men<Us> men(p);
  const Limits limits = find_limits(p, men);
  Spans spans;
  out = write_king(men.king, ~men.own & ~limits.attacked, out);
  spans.king = out;
  if (more_than_one(limits.checkers)) return {out, out, out, out, out, out, out};

  constexpr int kForward = Us == Color::White ? 8 : -8;
  constexpr Bitboard kLastRank = Us == Color::White ? kRank8 : kRank1;
  const PawnMoves pawns = pawn_moves(men, limits);
  out = write_pawns<kForward>(pawns.one & ~kLastRank, out);
  spans.pawn_steps = out;
  out = write_pawns<2 * kForward>(pawns.two, out);
  spans.double_steps = out;
  out = write_pawns<kForward - 1>(pawns.west & ~kLastRank, out);
  out = write_pawns<kForward + 1>(pawns.east & ~kLastRank, out);
  spans.pawn_captures = out;
  if (((pawns.one | pawns.west | pawns.east) & kLastRank) != 0) {
    out = write_promotions<kForward>(pawns.one & kLastRank, out);
    out = write_promotions<kForward - 1>(pawns.west & kLastRank, out);
    out = write_promotions<kForward + 1>(pawns.east & kLastRank, out);
  }
  if (p.en_passant_is_legal())
    en_passant_captures(p, men, [&](Square from) {
      *out++ = Move(from, p.en_passant_square(), MoveKind::EnPassant);
    });
  if (limits.checkers == 0)
    castlings(p, men, limits,
              [&](Square rook) { *out++ = Move(men.king, rook, MoveKind::Castling); });
  spans.special = out;

  const Bitboard target = limits.evasion & ~men.own;
  for (Bitboard b = men.knights & ~limits.pinned; b;) {
    const Square from = pop_square(b);
    out = write_knight(from, target, out);
  }
  spans.knights = out;
  if (limits.checkers == 0) [[likely]] {
    for (Bitboard b = men.diagonal & ~limits.pinned; b;)
      out = Sliders::write_bishop(pop_square(b), men.own, men.enemy, out);
    for (Bitboard b = men.straight & ~limits.pinned; b;)
      out = Sliders::write_rook(pop_square(b), men.own, men.enemy, out);
    for (Bitboard b = men.diagonal & limits.pinned; b;) {
      const Square from = pop_square(b);
      out = write_targets(
          from, Sliders::bishop_moves(from, men.own, men.enemy) & line(men.king, from), out);
    }
    for (Bitboard b = men.straight & limits.pinned; b;) {
      const Square from = pop_square(b);
      out = write_targets(
          from, Sliders::rook_moves(from, men.own, men.enemy) & line(men.king, from), out);
    }
  } else {  // a pinned man never answers a check
    for (Bitboard b = men.diagonal & ~limits.pinned; b;) {
      const Square from = pop_square(b);
      out = write_targets(from, Sliders::bishop_moves(from, men.own, men.enemy) & target, out);
    }
    for (Bitboard b = men.straight & ~limits.pinned; b;) {
      const Square from = pop_square(b);
      out = write_targets(from, Sliders::rook_moves(from, men.own, men.enemy) & target, out);
    }
  }
  spans.sliders = out;
  return spans;
}

// ---- Counting them ----

template <Color Us>
TAHL_INLINE int count_pawns(const Position& p, const Men<Us>& men, const Limits& limits) {
  constexpr Bitboard kLastRank = Us == Color::White ? kRank8 : kRank1;
  const PawnMoves pawns = pawn_moves(men, limits);
  int n = popcount(pawns.one) + popcount(pawns.two) + popcount(pawns.west) + popcount(pawns.east);
  if (((pawns.one | pawns.west | pawns.east) & kLastRank) != 0)
    n += 3 * (popcount(pawns.one & kLastRank) + popcount(pawns.west & kLastRank) +
              popcount(pawns.east & kLastRank));
  if (p.en_passant_is_legal()) en_passant_captures(p, men, [&](Square) { ++n; });
  return n;
}

template <Color Us>
TAHL_INLINE int count_king(const Men<Us>& men, const Limits& limits) {
  return popcount(king_attacks(men.king) & ~men.own & ~limits.attacked);
}

// Slider by slider, through a back end.
template <Color Us, class Sliders>
TAHL_INLINE int count_moves(const Position& p, const Men<Us>& men, const Limits& limits) {
  int n = count_king(men, limits);
  if (more_than_one(limits.checkers)) return n;
  n += count_pawns(p, men, limits);
  const Bitboard target = limits.evasion & ~men.own;
  for (Bitboard b = men.knights & ~limits.pinned; b;)
    n += popcount(knight_attacks(pop_square(b)) & target);
  if (limits.checkers == 0) [[likely]] {
    castlings(p, men, limits, [&](Square) { ++n; });
    for (Bitboard b = men.diagonal & ~limits.pinned; b;)
      n += Sliders::count_bishop(pop_square(b), men.own, men.enemy);
    for (Bitboard b = men.straight & ~limits.pinned; b;)
      n += Sliders::count_rook(pop_square(b), men.own, men.enemy);
    for (Bitboard b = men.diagonal & limits.pinned; b;) {
      const Square from = pop_square(b);
      n += popcount(Sliders::bishop_moves(from, men.own, men.enemy) & line(men.king, from));
    }
    for (Bitboard b = men.straight & limits.pinned; b;) {
      const Square from = pop_square(b);
      n += popcount(Sliders::rook_moves(from, men.own, men.enemy) & line(men.king, from));
    }
  } else {  // a pinned man never answers a check
    for (Bitboard b = men.diagonal & ~limits.pinned; b;)
      n += popcount(Sliders::bishop_moves(pop_square(b), men.own, men.enemy) & target);
    for (Bitboard b = men.straight & ~limits.pinned; b;)
      n += popcount(Sliders::rook_moves(pop_square(b), men.own, men.enemy) & target);
  }
  return n;
}

#ifdef __AVX2__
// All sliders at once: in one direction no two of them reach the same square, so the sizes of eight
// sets of rays are the number of moves.
template <Color Us>
TAHL_INLINE int count_setwise(const Position& p, const Men<Us>& men) {
  const Rays<Us> rays(p, men);
  int n = count_king(men, rays.limits);
  Bitboard knights = men.knights, target = ~men.own;
  if (rays.is_quiet) [[likely]] {
    constexpr Limits kNone{0, 0, ~Bitboard{0}, 0};
    n += count_pawns(p, men, kNone) + rays.count_quiet_sliders();
    castlings(p, men, rays.limits, [&](Square) { ++n; });
  } else {
    const Limits& limits = rays.limits;
    if (more_than_one(limits.checkers)) return n;
    n += count_pawns(p, men, limits) + rays.count_sliders();
    if (limits.checkers == 0) castlings(p, men, limits, [&](Square) { ++n; });
    knights &= ~limits.pinned;
    target &= limits.evasion;
  }
  for (; knights;) n += popcount(knight_attacks(pop_square(knights)) & target);
  return n;
}
#endif

// ---- Perft ----

// Stands for a back end where moves are counted without one.
struct NoSliders {};
// Up to so many bishops, rooks and queens of both sides, look-ups one by one are cheaper than
// fills: best of {0, 3, 5, 7, 9, 12} on the six standard positions, docs/lab.md.
[[maybe_unused]] constexpr int kFewSliders = 5;

// Calls visit(position after it) for every legal move.
template <Color Us, class Sliders, bool kKeyed, class Visit>
TAHL_INLINE void for_each_child(const Position& p, Visit visit) {
  using Known = Position::Known;
  MoveList moves;
  const Spans spans = write_moves<Us, Sliders>(p, moves.begin());
  moves.set_end(spans.sliders);
  const Move* m = moves.begin();
  const Key passed = kKeyed ? p.key_if_passed() : 0;
  const auto visit_until = [&]<Known kKnown>(const Move* end) __attribute__((always_inline)) {
    for (; m != end; ++m) {
      Position next;
      next.set_after<Us, kKnown, kKeyed>(p, passed, *m);
      visit(next);
    }
  };
  visit_until.template operator()<Known::King>(spans.king);
  visit_until.template operator()<Known::PawnStep>(spans.pawn_steps);
  visit_until.template operator()<Known::DoubleStep>(spans.double_steps);
  visit_until.template operator()<Known::PawnCapture>(spans.pawn_captures);
  for (; m != spans.special; ++m) {
    Position next = p;
    next.make_inline<kKeyed>(*m);
    visit(next);
  }
  visit_until.template operator()<Known::Knight>(spans.knights);
  visit_until.template operator()<Known::Slider>(spans.sliders);
}

// Out of line, so that the loop over a node's children stays small.
template <Color Us, class Sliders>
[[gnu::noinline]] std::uint64_t count_leaves(const Position& p) {
  const Men<Us> men(p);
#ifdef __AVX2__
  if constexpr (std::is_same_v<Sliders, NoSliders>) {
    if (popcount(p.diagonal_sliders() | p.straight_sliders()) <= kFewSliders)
      return static_cast<std::uint64_t>(count_moves<Us, Pext>(p, men, find_limits_by_lookup(men)));
    return static_cast<std::uint64_t>(count_setwise<Us>(p, men));
  } else
#endif
    return static_cast<std::uint64_t>(count_moves<Us, Sliders>(p, men, find_limits(p, men)));
}

template <Color Us, class Sliders, class Lists>
std::uint64_t perft_counted(const Position& p, int depth) {
  if (depth == 1) return count_leaves<Us, Sliders>(p);
  std::uint64_t nodes = 0;
  if (depth == 2) {
    for_each_child<Us, Lists, /*kKeyed=*/false>(
        p, [&](const Position& next) { nodes += count_leaves<~Us, Sliders>(next); });
  } else {
    for_each_child<Us, Lists, /*kKeyed=*/false>(p, [&](const Position& next) {
      nodes += perft_counted<~Us, Sliders, Lists>(next, depth - 1);
    });
  }
  return nodes;
}

template <Color Us, class Sliders>
std::uint64_t perft_made(const Position& p, int depth) {
  std::uint64_t nodes = 0;
  if (depth == 1) {
    for_each_child<Us, Sliders, /*kKeyed=*/true>(p, [&](const Position& next) {
      asm volatile("" : : "m"(next));  // the position is there, though nobody looks
      ++nodes;
    });
  } else {
    for_each_child<Us, Sliders, /*kKeyed=*/true>(
        p, [&](const Position& next) { nodes += perft_made<~Us, Sliders>(next, depth - 1); });
  }
  return nodes;
}

// ---- The table of entry points ----

template <class Sliders>
void legal_moves_of(const Position& p, MoveList& out) {
  const Spans spans = p.side_to_move() == Color::White
                          ? write_moves<Color::White, Sliders>(p, out.begin())
                          : write_moves<Color::Black, Sliders>(p, out.begin());
  out.set_end(spans.sliders);
}

template <class Sliders, class Lists>
std::uint64_t perft_counted_of(const Position& p, int depth) {
  return p.side_to_move() == Color::White ? perft_counted<Color::White, Sliders, Lists>(p, depth)
                                          : perft_counted<Color::Black, Sliders, Lists>(p, depth);
}

template <class Sliders>
std::uint64_t perft_made_of(const Position& p, int depth) {
  return p.side_to_move() == Color::White ? perft_made<Color::White, Sliders>(p, depth)
                                          : perft_made<Color::Black, Sliders>(p, depth);
}

template <class Sliders>
constexpr MovegenTable::Backend backend_of() {
  return {
      legal_moves_of<Sliders>,
      perft_counted_of<Sliders, Sliders>,
      perft_made_of<Sliders>,
      [](Square s, Bitboard own, Bitboard enemy) { return Sliders::bishop_moves(s, own, enemy); },
      [](Square s, Bitboard own, Bitboard enemy) { return Sliders::rook_moves(s, own, enemy); },
      [](Square s, Bitboard own, Bitboard enemy) { return Sliders::count_bishop(s, own, enemy); },
      [](Square s, Bitboard own, Bitboard enemy) { return Sliders::count_rook(s, own, enemy); },
      [](Square s, Bitboard own, Bitboard enemy, Move* out) {
        return Sliders::write_bishop(s, own, enemy, out);
      },
      [](Square s, Bitboard own, Bitboard enemy, Move* out) {
        return Sliders::write_rook(s, own, enemy, out);
      }};
}

// What legal_moves() and perft() use: the back end that CMake's TAHL_SLIDERS names, or titboards
// where there are any, and the setwise count.
#if defined(TAHL_SLIDERS_MAGIC) || !defined(__BMI2__)
using ListSliders = Magic;
#elif defined(TAHL_SLIDERS_PEXT)
using ListSliders = Pext;
#else
using ListSliders = Titboard;
#endif
#ifdef __AVX2__
using CountSliders = NoSliders;
#else
using CountSliders = ListSliders;
#endif

constexpr MovegenTable::Backend best_backend() {
  MovegenTable::Backend best;
  best.legal_moves = legal_moves_of<ListSliders>;
  best.perft_counted = perft_counted_of<CountSliders, ListSliders>;
  best.perft_made = perft_made_of<ListSliders>;
  return best;
}

}  // namespace
}  // namespace tahl
