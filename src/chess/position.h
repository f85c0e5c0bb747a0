#pragma once

#include <array>

#include "chess/types.h"

namespace tahl {

enum class CastlingSide : std::uint8_t { King, Queen };

// Everything FEN says, as a value of 96 bytes: copy it freely, it shares nothing.
// What came before (repetitions) is Game's.
class Position {
 public:
  static const Position& initial();

  Color side_to_move() const { return side_; }
  Bitboard pieces(Color c) const { return by_color_[index(c)]; }
  Bitboard pieces(PieceType t) const { return by_type_[index(t)]; }
  Bitboard pieces(Color c, PieceType t) const { return pieces(c) & pieces(t); }
  Bitboard occupied() const { return by_color_[0] | by_color_[1]; }
  PieceType type_on(Square s) const;  // None if empty
  Piece piece_on(Square s) const;
  Square king(Color c) const { return first_square(pieces(c, PieceType::King)); }

  // The rook that `c` may castle with on that side of his king, or kNoSquare without the right.
  Square castling_rook(Color c, CastlingSide side) const {
    return castling_rook_[index(c) * 2 + static_cast<int>(side)];
  }
  bool can_castle(Color c, CastlingSide side) const { return castling_rook(c, side) != kNoSquare; }

  // The square behind a pawn that has just made a double step, whether or not it can be captured;
  // else kNoSquare.
  Square en_passant_square() const { return en_passant_; }
  // True if some en passant capture is legal. FEN output and key() mention the square only then.
  bool en_passant_is_legal() const { return en_passant_legal_; }

  int halfmove_clock() const {
    return static_cast<int>(halfmove_clock_);
  }  // plies since capture or pawn move
  int fullmove_number() const { return static_cast<int>(fullmove_number_); }

  // Zobrist key of pieces, side, castling rights, and the en passant file if the capture is legal.
  Key key() const { return key_; }

  bool is_check() const { return checkers() != 0; }
  Bitboard checkers() const;  // enemy pieces that attack the king of the side to move
  Bitboard attackers_to(Square s, Bitboard occupied) const;  // of both colours

  bool is_capture(Move m) const;
  bool gives_check(Move m) const;

  // Plays `m`. Precondition: legal here.
  void make(Move m);
  // Passes: side and en passant change. Precondition: not in check.
  void make_null();

  // Same pieces, side, castling and legal en passant; counters are not compared.
  bool same_as(const Position& other) const;

 private:
  friend class PositionBuilder;
  friend class MoveGenerator;
  void put(Color c, PieceType t, Square s);
  void remove(Color c, PieceType t, Square s);
  void set_castling_rook(int slot, Square rook);
  void refresh_en_passant();

  std::array<Bitboard, 6> by_type_{};
  std::array<Bitboard, 2> by_color_{};
  Key key_ = 0;
  std::uint32_t halfmove_clock_ = 0;
  std::uint32_t fullmove_number_ = 1;
  std::array<Square, 4> castling_rook_{kNoSquare, kNoSquare, kNoSquare, kNoSquare};
  Square en_passant_ = kNoSquare;
  bool en_passant_legal_ = false;
  Color side_ = Color::White;
};

// Puts positions together from parts (FEN, decoders). build() needs a position that `problem()`
// accepts.
class PositionBuilder {
 public:
  void put(Square s, Piece p) { position_.put(p.color, p.type, s); }
  bool is_empty(Square s) const { return (position_.occupied() & bit(s)) == 0; }
  void set_side_to_move(Color c) { position_.side_ = c; }
  void set_castling_rook(Color c, CastlingSide side, Square rook) {
    position_.castling_rook_[static_cast<std::size_t>(index(c) * 2 + static_cast<int>(side))] =
        rook;
  }
  void set_en_passant(Square s) { position_.en_passant_ = s; }
  void set_halfmove_clock(int n) { position_.halfmove_clock_ = static_cast<std::uint32_t>(n); }
  void set_fullmove_number(int n) { position_.fullmove_number_ = static_cast<std::uint32_t>(n); }
  const Position& view() const { return position_; }
  // What makes this no chess position (kings, pawns, too many pieces, side not to move in check,
  // en passant), or an empty string.
  std::string problem() const;
  Position build() const;

 private:
  Position position_;
};

}  // namespace tahl
