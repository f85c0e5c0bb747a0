#include "chess/movegen.h"

#include "chess/attacks.h"

namespace tahl {
namespace {

// Sinks take what the generator finds: written as moves, or only counted.
class ListSink {
 public:
  explicit ListSink(MoveList& out) : out_(out) {}
  void targets(Square from, Bitboard to) {
    while (to) out_.push_back(Move(from, pop_square(to)));
  }
  void pawns(Bitboard to, int step) {
    while (to) {
      const Square s = pop_square(to);
      out_.push_back(Move(static_cast<Square>(s - step), s));
    }
  }
  void promotions(Bitboard to, int step) {
    while (to) {
      const Square s = pop_square(to);
      const Square from = static_cast<Square>(s - step);
      for (const PieceType t :
           {PieceType::Queen, PieceType::Rook, PieceType::Bishop, PieceType::Knight})
        out_.push_back(Move(from, s, MoveKind::Promotion, t));
    }
  }
  void single(Move m) { out_.push_back(m); }
  template <class Sliders>
  void bishop(Square from, Bitboard own, Bitboard enemy, Bitboard mask) {
    Sliders::append_bishop(from, own, enemy, mask, out_);
  }
  template <class Sliders>
  void rook(Square from, Bitboard own, Bitboard enemy, Bitboard mask) {
    Sliders::append_rook(from, own, enemy, mask, out_);
  }

 private:
  MoveList& out_;
};

class CountSink {
 public:
  std::uint64_t count() const { return count_; }
  void targets(Square, Bitboard to) { add(to, 1); }
  void pawns(Bitboard to, int) { add(to, 1); }
  void promotions(Bitboard to, int) { add(to, 4); }
  void single(Move) { ++count_; }
  template <class Sliders>
  void bishop(Square from, Bitboard own, Bitboard enemy, Bitboard mask) {
    add(Sliders::bishop_moves(from, own, enemy) & mask, 1);
  }
  template <class Sliders>
  void rook(Square from, Bitboard own, Bitboard enemy, Bitboard mask) {
    add(Sliders::rook_moves(from, own, enemy) & mask, 1);
  }

 private:
  void add(Bitboard to, unsigned factor) { count_ += static_cast<unsigned>(popcount(to)) * factor; }
  std::uint64_t count_ = 0;
};

template <Color Us>
constexpr Bitboard forward(Bitboard b) {
  return Us == Color::White ? b << 8 : b >> 8;
}

// Only legal moves are made: `evasion` holds the squares that answer a check (all, without one),
// and a pinned piece stays on the line through its king.
template <Color Us, class Sliders, class Sink>
class Generator {
 public:
  Generator(const Position& p, Sink& sink)
      : p_(p), sink_(sink), king_(p.king(Us)), own_(p.pieces(Us)), enemy_(p.pieces(~Us)) {}

  void all() {
    const Bitboard queens = p_.pieces(~Us, PieceType::Queen);
    const Bitboard diagonal = p_.pieces(~Us, PieceType::Bishop) | queens;
    const Bitboard straight = p_.pieces(~Us, PieceType::Rook) | queens;
    const Bitboard occupied = own_ | enemy_;

    attacked_ = attacked_by_enemy(occupied ^ bit(king_), diagonal, straight);
    sink_.targets(king_, king_attacks(king_) & ~own_ & ~attacked_);

    Bitboard checkers = (pawn_attacks(Us, king_) & p_.pieces(~Us, PieceType::Pawn)) |
                        (knight_attacks(king_) & p_.pieces(~Us, PieceType::Knight));
    // Enemy sliders that would see the king if our own men were not there: checkers, or pinners.
    Bitboard snipers =
        (bishop_attacks(king_, enemy_) & diagonal) | (rook_attacks(king_, enemy_) & straight);
    while (snipers) {
      const Square sniper = pop_square(snipers);
      const Bitboard between_us = between(king_, sniper) & own_;
      if (between_us == 0) {
        checkers |= bit(sniper);
      } else if (!more_than_one(between_us)) {
        pinned_ |= between_us;
      }
    }
    if (more_than_one(checkers)) return;
    evasion_ = checkers ? between(king_, first_square(checkers)) | checkers : ~Bitboard{0};

    pawns();
    const Bitboard target = evasion_ & ~own_;
    for (Bitboard b = p_.pieces(Us, PieceType::Knight) & ~pinned_; b;) {
      const Square from = pop_square(b);
      sink_.targets(from, knight_attacks(from) & target);
    }
    const Bitboard our_queens = p_.pieces(Us, PieceType::Queen);
    for (Bitboard b = p_.pieces(Us, PieceType::Bishop) | our_queens; b;) {
      const Square from = pop_square(b);
      sink_.template bishop<Sliders>(from, own_, enemy_, target & pin_line(from));
    }
    for (Bitboard b = p_.pieces(Us, PieceType::Rook) | our_queens; b;) {
      const Square from = pop_square(b);
      sink_.template rook<Sliders>(from, own_, enemy_, target & pin_line(from));
    }
    if (checkers == 0) castling(occupied);
  }

 private:
  Bitboard attacked_by_enemy(Bitboard occupied, Bitboard diagonal, Bitboard straight) const {
    Bitboard result =
        pawns_attack(~Us, p_.pieces(~Us, PieceType::Pawn)) | king_attacks(p_.king(~Us));
    for (Bitboard b = p_.pieces(~Us, PieceType::Knight); b;)
      result |= knight_attacks(pop_square(b));
    for (; diagonal;) result |= bishop_attacks(pop_square(diagonal), occupied);
    for (; straight;) result |= rook_attacks(pop_square(straight), occupied);
    return result;
  }

  Bitboard pin_line(Square from) const {
    return pinned_ & bit(from) ? line(king_, from) : ~Bitboard{0};
  }

  void pawns() {
    constexpr int kForward = Us == Color::White ? 8 : -8;
    constexpr int kWest = kForward - 1, kEast = kForward + 1;
    constexpr Bitboard kLastRank = Us == Color::White ? kRank8 : kRank1;
    constexpr Bitboard kThirdRank = rank_mask(Us == Color::White ? 2 : 5);
    const Bitboard all_pawns = p_.pieces(Us, PieceType::Pawn);
    const Bitboard empty = ~(own_ | enemy_);
    const Bitboard file_pinned = pinned_ & file_mask(file_of(king_));

    // Pushes: a pinned pawn may step only along the file of its king.
    const Bitboard pushable = all_pawns & (~pinned_ | file_pinned);
    const Bitboard one = forward<Us>(pushable) & empty;
    const Bitboard two = forward<Us>(one & kThirdRank) & empty & evasion_;
    emit<kForward>(one & evasion_, kLastRank);
    sink_.pawns(two, 2 * kForward);

    // Captures: free pawns together, pinned ones along their line.
    const Bitboard prey = enemy_ & evasion_;
    const Bitboard free = all_pawns & ~pinned_;
    Bitboard west = forward<Us>((free & ~kFileA) >> 1) & prey;
    Bitboard east = forward<Us>((free & ~kFileH) << 1) & prey;
    for (Bitboard b = all_pawns & pinned_; b;) {
      const Square from = pop_square(b);
      const Bitboard along = line(king_, from) & prey;
      west |= forward<Us>((bit(from) & ~kFileA) >> 1) & along;
      east |= forward<Us>((bit(from) & ~kFileH) << 1) & along;
    }
    emit<kWest>(west, kLastRank);
    emit<kEast>(east, kLastRank);
    if (p_.en_passant_is_legal()) en_passant(all_pawns);
  }

  template <int Step>
  void emit(Bitboard to, Bitboard last_rank) {
    sink_.pawns(to & ~last_rank, Step);
    if (to & last_rank) sink_.promotions(to & last_rank, Step);
  }

  // Two men leave one line at once, so pins and checks are asked of the board afterwards.
  void en_passant(Bitboard all_pawns) {
    const Square to = p_.en_passant_square();
    const Square captured = static_cast<Square>(to ^ 8);
    for (Bitboard b = pawn_attacks(~Us, to) & all_pawns; b;) {
      const Square from = pop_square(b);
      const Bitboard after = ((own_ | enemy_) ^ bit(from) ^ bit(captured)) | bit(to);
      if ((p_.attackers_to(king_, after) & enemy_ & ~bit(captured)) == 0)
        sink_.single(Move(from, to, MoveKind::EnPassant));
    }
  }

  // For Chess960 too: every square on the king's and the rook's way is free but for these two, the
  // king's way is not attacked, and the rook did not shield the king's target.
  void castling(Bitboard occupied) {
    for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen}) {
      const Square rook = p_.castling_rook(Us, side);
      if (rook == kNoSquare) continue;
      const int rank = rank_of(king_);
      const Square king_to = make_square(side == CastlingSide::King ? 6 : 2, rank);
      const Square rook_to = make_square(side == CastlingSide::King ? 5 : 3, rank);
      const Bitboard king_path = between(king_, king_to) | bit(king_to);
      const Bitboard rook_path = between(rook, rook_to) | bit(rook_to);
      const Bitboard others = occupied & ~bit(king_) & ~bit(rook);
      if ((king_path | rook_path) & others) continue;
      if (king_path & attacked_) continue;
      if (pinned_ & bit(rook)) continue;
      sink_.single(Move(king_, rook, MoveKind::Castling));
    }
  }

  const Position& p_;
  Sink& sink_;
  const Square king_;
  const Bitboard own_, enemy_;
  Bitboard attacked_ = 0;
  Bitboard pinned_ = 0;
  Bitboard evasion_ = 0;
};

template <class Sliders, class Sink>
void generate(const Position& p, Sink& sink) {
  if (p.side_to_move() == Color::White) {
    Generator<Color::White, Sliders, Sink>(p, sink).all();
  } else {
    Generator<Color::Black, Sliders, Sink>(p, sink).all();
  }
}

template <class Sliders>
std::uint64_t perft_by(const Position& p, int depth) {
  if (depth <= 0) return 1;
  if (depth == 1) {
    CountSink sink;
    generate<Sliders>(p, sink);
    return sink.count();
  }
  MoveList moves;
  ListSink sink(moves);
  generate<Sliders>(p, sink);
  std::uint64_t nodes = 0;
  for (const Move m : moves) {
    Position next = p;
    next.make(m);
    nodes += perft_by<Sliders>(next, depth - 1);
  }
  return nodes;
}

// Runs f with the back end as a type.
template <class F>
auto with_backend([[maybe_unused]] SliderBackend backend, F f) {
#ifdef __BMI2__
  if (backend == SliderBackend::Pext) return f(Pext{});
#endif
  assert(is_available(backend));
  return f(Magic{});
}

}  // namespace

void legal_moves(const Position& position, MoveList& out) {
  out.clear();
  ListSink sink(out);
  generate<DefaultSliders>(position, sink);
}

MoveList legal_moves(const Position& position) {
  MoveList moves;
  legal_moves(position, moves);
  return moves;
}

bool is_legal(const Position& position, Move m) { return legal_moves(position).contains(m); }

bool has_legal_move(const Position& position) {
  CountSink sink;
  generate<DefaultSliders>(position, sink);
  return sink.count() != 0;
}

bool is_available(SliderBackend backend) {
#ifdef __BMI2__
  return backend == SliderBackend::Magic || backend == SliderBackend::Pext;
#else
  return backend == SliderBackend::Magic;
#endif
}

void legal_moves_with(SliderBackend backend, const Position& position, MoveList& out) {
  out.clear();
  with_backend(backend, [&]<class Sliders>(Sliders) {
    ListSink sink(out);
    generate<Sliders>(position, sink);
  });
}

std::uint64_t perft(const Position& position, int depth) {
  return perft_by<DefaultSliders>(position, depth);
}

std::uint64_t perft_with(SliderBackend backend, const Position& position, int depth) {
  return with_backend(backend,
                      [&]<class Sliders>(Sliders) { return perft_by<Sliders>(position, depth); });
}

}  // namespace tahl
