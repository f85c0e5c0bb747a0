#include "chess/position.h"

#include <fmt/format.h>

#include <algorithm>

#include "chess/attacks.h"
#include "chess/make_move.h"
#include "chess/zobrist.h"

namespace tahl {
namespace {

constexpr PieceType kTypeOfCode[8] = {PieceType::None,   PieceType::Pawn, PieceType::Bishop,
                                      PieceType::Knight, PieceType::Rook, PieceType::King,
                                      PieceType::Queen,  PieceType::None};
constexpr unsigned kCodeOfType[7] = {1, 3, 2, 4, 6, 5, 0};

// splitmix64 (Vigna), a fixed seed.
constexpr ZobristKeys make_keys() {
  ZobristKeys keys;
  std::uint64_t state = 19610505;
  const auto next = [&state] {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  };
  for (const unsigned black : {0u, 8u})
    for (const PieceType t : kPieceTypes)
      for (Key& key : keys.piece[kCodeOfType[index(t)] | black]) key = next();
  for (const int color : {0, 1}) {  // a right counts by its rook's file, whichever the side
    for (int file = 0; file < 8; ++file)
      keys.castling[color * 2][file] = keys.castling[color * 2 + 1][file] = next();
  }
  for (Key& key : keys.en_passant) key = next();
  keys.black_to_move = next();
  return keys;
}

}  // namespace

constinit const ZobristKeys kZobrist = make_keys();
constinit const PlanesOfCode kPlanesOfCode = [] {
  PlanesOfCode planes;
  for (unsigned code = 0; code < 16; ++code)
    for (int plane = 0; plane < 4; ++plane)
      planes.of[code][plane] = code >> plane & 1 ? ~Bitboard{0} : 0;
  return planes;
}();

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

constexpr Position::Code Position::code_of(Color c, PieceType t) {
  return kCodeOfType[index(t)] | (c == Color::Black ? kBlackCode : 0);
}

PieceType Position::type_on(Square s) const { return kTypeOfCode[code_on(s) & 7]; }

Piece Position::piece_on(Square s) const {
  const Code code = code_on(s);
  return {kTypeOfCode[code & 7], code & kBlackCode ? Color::Black : Color::White};
}

void Position::refresh_castling_men() {
  castling_men_ = 0;
  for (int slot = 0; slot < 4; ++slot) {
    const Square rook = castling_rook_[slot];
    if (rook != kNoSquare)
      castling_men_ |= bit(rook) | pieces(slot < 2 ? Color::White : Color::Black, PieceType::King);
  }
}

// After a move of a man with code `moved` from and to the squares `touched`.
void Position::lose_castling(Code moved, Bitboard touched) {
  for (int slot = 0; slot < 4; ++slot) {
    Square& rook = castling_rook_[slot];
    if (rook == kNoSquare) continue;
    const bool king_moved =
        moved == code_of(slot < 2 ? Color::White : Color::Black, PieceType::King);
    if (king_moved || (bit(rook) & touched) != 0) {
      key_ ^= kZobrist.castling[slot][file_of(rook)];
      rook = kNoSquare;
    }
  }
  refresh_castling_men();
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
      key_ ^= kZobrist.en_passant[file_of(en_passant_)];
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

void Position::make(Move m) { make_inline</*kKeyed=*/true>(m); }

// Castling, en passant and promotion.
void Position::make_special(Move m) {
  const Color us = side_, them = ~us;
  const Square from = m.from(), to = m.to();
  if (m.is_castling()) {
    const int rank = rank_of(from);
    const bool kingside = to > from;
    const Code king = code_of(us, PieceType::King), rook = code_of(us, PieceType::Rook);
    toggle<true>(king, from);
    toggle<true>(rook, to);
    toggle<true>(king, make_square(kingside ? 6 : 2, rank));
    toggle<true>(rook, make_square(kingside ? 5 : 3, rank));
    ++halfmove_clock_;
    lose_castling(king, bit(from) | bit(to));
    return;
  }
  const Code pawn = code_of(us, PieceType::Pawn);
  toggle<true>(pawn, from);
  if (m.is_en_passant()) {
    toggle<true>(code_of(them, PieceType::Pawn), static_cast<Square>(to ^ 8));
    toggle<true>(pawn, to);
  } else {
    if (const Code taken = code_on(to)) toggle<true>(taken, to);
    toggle<true>(code_of(us, m.promotion()), to);
    if ((bit(to) & castling_men_) != 0) lose_castling(pawn, bit(to));
  }
  halfmove_clock_ = 0;
}

void Position::make_null() {
  assert(!is_check());
  if (en_passant_legal_) key_ ^= kZobrist.en_passant[file_of(en_passant_)];
  en_passant_ = kNoSquare;
  en_passant_legal_ = false;
  ++halfmove_clock_;
  if (side_ == Color::Black) ++fullmove_number_;
  side_ = ~side_;
  key_ ^= kZobrist.black_to_move;
}

bool Position::same_as(const Position& o) const {
  const bool same_en_passant = en_passant_legal_ == o.en_passant_legal_ &&
                               (!en_passant_legal_ || en_passant_ == o.en_passant_);
  return key_ == o.key_ && std::ranges::equal(planes_, o.planes_) && side_ == o.side_ &&
         std::ranges::equal(castling_rook_, o.castling_rook_) && same_en_passant;
}

void PositionBuilder::put(Square s, Piece p) {
  assert(is_empty(s));
  position_.toggle<true>(Position::code_of(p.color, p.type), s);
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
    const Square rook = p.castling_rook_[slot];
    if (rook != kNoSquare) p.key_ ^= kZobrist.castling[slot][file_of(rook)];
  }
  p.refresh_castling_men();
  if (p.side_ == Color::Black) p.key_ ^= kZobrist.black_to_move;
  p.refresh_en_passant();
  return p;
}

}  // namespace tahl
