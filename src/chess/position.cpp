#include "chess/position.h"

#include <fmt/format.h>

#include <algorithm>

#include "chess/attacks.h"

namespace tahl {
namespace {

struct ZobristKeys {
  std::array<std::array<std::array<Key, 64>, 6>, 2> piece{};  // [color][type][square]
  std::array<std::array<Key, 8>, 2> castling{};               // [color][file of the rook]
  std::array<Key, 8> en_passant{};                            // [file]
  Key black_to_move = 0;
};

// splitmix64 (Vigna), a fixed seed: keys are the same in every run and build.
constexpr ZobristKeys make_keys() {
  ZobristKeys keys;
  std::uint64_t state = 19610505;
  const auto next = [&state] {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  };
  for (auto& color : keys.piece)
    for (auto& type : color)
      for (auto& key : type) key = next();
  for (auto& color : keys.castling)
    for (auto& key : color) key = next();
  for (auto& key : keys.en_passant) key = next();
  keys.black_to_move = next();
  return keys;
}
constexpr ZobristKeys kKeys = make_keys();

std::size_t at(Color c) { return static_cast<std::size_t>(index(c)); }
std::size_t at(PieceType t) { return static_cast<std::size_t>(index(t)); }
Color slot_color(std::size_t slot) { return slot < 2 ? Color::White : Color::Black; }

}  // namespace

const Position& Position::initial() {
  static const Position position = [] {
    PositionBuilder builder;
    constexpr PieceType kBack[] = {PieceType::Rook,   PieceType::Knight, PieceType::Bishop,
                                   PieceType::Queen,  PieceType::King,   PieceType::Bishop,
                                   PieceType::Knight, PieceType::Rook};
    for (int file = 0; file < 8; ++file) {
      builder.put(make_square(file, 0), {kBack[file], Color::White});
      builder.put(make_square(file, 1), {PieceType::Pawn, Color::White});
      builder.put(make_square(file, 6), {PieceType::Pawn, Color::Black});
      builder.put(make_square(file, 7), {kBack[file], Color::Black});
    }
    for (const Color c : {Color::White, Color::Black}) {
      const int rank = c == Color::White ? 0 : 7;
      builder.set_castling_rook(c, CastlingSide::King, make_square(7, rank));
      builder.set_castling_rook(c, CastlingSide::Queen, make_square(0, rank));
    }
    return builder.build();
  }();
  return position;
}

PieceType Position::type_on(Square s) const {
  const Bitboard b = bit(s);
  for (const PieceType t : kPieceTypes)
    if (by_type_[at(t)] & b) return t;
  return PieceType::None;
}

Piece Position::piece_on(Square s) const {
  return {type_on(s), by_color_[1] & bit(s) ? Color::Black : Color::White};
}

void Position::put(Color c, PieceType t, Square s) {
  by_type_[at(t)] |= bit(s);
  by_color_[at(c)] |= bit(s);
  key_ ^= kKeys.piece[at(c)][at(t)][s];
}

void Position::remove(Color c, PieceType t, Square s) {
  by_type_[at(t)] &= ~bit(s);
  by_color_[at(c)] &= ~bit(s);
  key_ ^= kKeys.piece[at(c)][at(t)][s];
}

void Position::set_castling_rook(int slot, Square rook) {
  const auto i = static_cast<std::size_t>(slot);
  Square& current = castling_rook_[i];
  auto& keys = kKeys.castling[at(slot_color(i))];
  if (current != kNoSquare) key_ ^= keys[static_cast<std::size_t>(file_of(current))];
  if (rook != kNoSquare) key_ ^= keys[static_cast<std::size_t>(file_of(rook))];
  current = rook;
}

Bitboard Position::attackers_to(Square s, Bitboard occupied) const {
  const Bitboard queens = pieces(PieceType::Queen);
  return (pawn_attacks(Color::Black, s) & pieces(Color::White, PieceType::Pawn)) |
         (pawn_attacks(Color::White, s) & pieces(Color::Black, PieceType::Pawn)) |
         (knight_attacks(s) & pieces(PieceType::Knight)) |
         (king_attacks(s) & pieces(PieceType::King)) |
         (bishop_attacks(s, occupied) & (pieces(PieceType::Bishop) | queens)) |
         (rook_attacks(s, occupied) & (pieces(PieceType::Rook) | queens));
}

Bitboard Position::checkers() const {
  return attackers_to(king(side_), occupied()) & pieces(~side_);
}

// Sets en_passant_legal_ and its part of the key from en_passant_. The key must not contain it yet.
void Position::refresh_en_passant() {
  en_passant_legal_ = false;
  if (en_passant_ == kNoSquare) return;
  const Square captured = static_cast<Square>(en_passant_ ^ 8);
  Bitboard capturers = pawn_attacks(~side_, en_passant_) & pieces(side_, PieceType::Pawn);
  while (capturers) {
    const Square from = pop_square(capturers);
    const Bitboard after = (occupied() ^ bit(from) ^ bit(captured)) | bit(en_passant_);
    if ((attackers_to(king(side_), after) & pieces(~side_) & ~bit(captured)) == 0) {
      en_passant_legal_ = true;
      key_ ^= kKeys.en_passant[static_cast<std::size_t>(file_of(en_passant_))];
      return;
    }
  }
}

bool Position::is_capture(Move m) const {
  return m.is_en_passant() || (!m.is_castling() && (occupied() & bit(m.to())));
}

bool Position::gives_check(Move m) const {
  Position next = *this;
  next.make(m);
  return next.is_check();
}

void Position::make(Move m) {
  const Color us = side_, them = ~us;
  const Square from = m.from(), to = m.to();
  const PieceType moved = type_on(from);
  assert(moved != PieceType::None && (pieces(us) & bit(from)));

  if (en_passant_legal_) key_ ^= kKeys.en_passant[static_cast<std::size_t>(file_of(en_passant_))];
  en_passant_ = kNoSquare;
  en_passant_legal_ = false;
  ++halfmove_clock_;

  if (m.is_castling()) {
    const int rank = rank_of(from);
    const bool kingside = to > from;
    remove(us, PieceType::King, from);
    remove(us, PieceType::Rook, to);
    put(us, PieceType::King, make_square(kingside ? 6 : 2, rank));
    put(us, PieceType::Rook, make_square(kingside ? 5 : 3, rank));
  } else {
    const Square target = m.is_en_passant() ? static_cast<Square>(to ^ 8) : to;
    if (pieces(them) & bit(target)) {
      remove(them, type_on(target), target);
      halfmove_clock_ = 0;
    }
    remove(us, moved, from);
    put(us, m.is_promotion() ? m.promotion() : moved, to);
  }
  if (moved == PieceType::King) {
    set_castling_rook(index(us) * 2, kNoSquare);
    set_castling_rook(index(us) * 2 + 1, kNoSquare);
  }
  for (int slot = 0; slot < 4; ++slot) {  // a rook that left, or was taken
    const Square rook = castling_rook_[static_cast<std::size_t>(slot)];
    if (rook != kNoSquare && (rook == from || rook == to)) set_castling_rook(slot, kNoSquare);
  }

  side_ = them;
  key_ ^= kKeys.black_to_move;
  if (us == Color::Black) ++fullmove_number_;
  if (moved == PieceType::Pawn) {
    halfmove_clock_ = 0;
    if ((from ^ to) == 16) {  // a double step
      en_passant_ = static_cast<Square>((from + to) / 2);
      refresh_en_passant();
    }
  }
}

void Position::make_null() {
  assert(!is_check());
  if (en_passant_legal_) key_ ^= kKeys.en_passant[static_cast<std::size_t>(file_of(en_passant_))];
  en_passant_ = kNoSquare;
  en_passant_legal_ = false;
  ++halfmove_clock_;
  if (side_ == Color::Black) ++fullmove_number_;
  side_ = ~side_;
  key_ ^= kKeys.black_to_move;
}

bool Position::same_as(const Position& o) const {
  const bool same_en_passant = en_passant_legal_ == o.en_passant_legal_ &&
                               (!en_passant_legal_ || en_passant_ == o.en_passant_);
  return key_ == o.key_ && by_type_ == o.by_type_ && by_color_ == o.by_color_ && side_ == o.side_ &&
         castling_rook_ == o.castling_rook_ && same_en_passant;
}

std::string PositionBuilder::problem() const {
  const Position& p = position_;
  for (const Color c : {Color::White, Color::Black}) {
    const std::string_view name = c == Color::White ? "white" : "black";
    const auto count = [&](PieceType t) { return popcount(p.pieces(c, t)); };
    if (count(PieceType::King) != 1)
      return fmt::format("{} has {} kings", name, count(PieceType::King));
    const int pawns = count(PieceType::Pawn);
    if (pawns > 8) return fmt::format("{} has {} pawns", name, pawns);
    const int promoted =
        std::max(0, count(PieceType::Knight) - 2) + std::max(0, count(PieceType::Bishop) - 2) +
        std::max(0, count(PieceType::Rook) - 2) + std::max(0, count(PieceType::Queen) - 1);
    if (promoted > 8 - pawns)
      return fmt::format("{} has {} promoted pieces and {} pawns", name, promoted, pawns);
  }
  if (p.pieces(PieceType::Pawn) & (kRank1 | kRank8)) return "a pawn stands on rank 1 or 8";
  const Color us = p.side_to_move();
  if (p.attackers_to(p.king(~us), p.occupied()) & p.pieces(us))
    return "the side not to move is in check";
  if (const Square s = p.en_passant_square(); s != kNoSquare) {
    const Square pushed = static_cast<Square>(s ^ 8);
    const int back = us == Color::White ? 8 : -8;
    const Square origin = static_cast<Square>(s + back);
    if (relative_rank(us, s) != 5)
      return fmt::format("en passant square {} is on the wrong rank", square_name(s));
    if ((p.pieces(~us, PieceType::Pawn) & bit(pushed)) == 0)
      return fmt::format("en passant square {} has no pawn in front of it", square_name(s));
    if (p.occupied() & (bit(s) | bit(origin)))
      return fmt::format("en passant square {} or the one behind it is occupied", square_name(s));
  }
  return {};
}

Position PositionBuilder::build() const {
  Position p = position_;
  for (int slot = 0; slot < 4; ++slot) {
    const Square rook = p.castling_rook_[static_cast<std::size_t>(slot)];
    p.castling_rook_[static_cast<std::size_t>(slot)] = kNoSquare;
    p.set_castling_rook(slot, rook);
  }
  if (p.side_ == Color::Black) p.key_ ^= kKeys.black_to_move;
  p.refresh_en_passant();
  return p;
}

}  // namespace tahl
