#pragma once

#include "chess/types.h"

namespace tahl {

enum class CastlingSide : std::uint8_t { King, Queen };

// Everything FEN says, as a value of one cache line: copy it freely, it shares nothing.
// What came before (repetitions) is Game's.
//
// The board is four bitboards: three hold a bit each of every square's piece code, the fourth the
// black men. The codes are chosen so that what is asked most often costs one or two operations:
//
//   bit 0  pawn, knight, king          pawn 1, bishop 2, knight 3, rook 4, king 5, queen 6
//   bit 1  bishop, knight, queen       empty 0
//   bit 2  rook, king, queen           bit 3: black
//
// so diagonal sliders are bit 1 without bit 0, straight ones bit 2 without bit 0. A move is played
// by exclusive or with the moved and the taken piece's codes, no branch on either. (Chess
// Programming Wiki, "Quad-Bitboards".)
class alignas(64) Position {
 public:
  static const Position& initial();

  TAHL_INLINE Color side_to_move() const { return side_; }
  TAHL_INLINE Bitboard occupied() const { return planes_[0] | planes_[1] | planes_[2]; }
  TAHL_INLINE Bitboard pieces(Color c) const {
    return c == Color::White ? occupied() & ~planes_[3] : planes_[3];
  }
  TAHL_INLINE Bitboard pieces(PieceType t) const {
    const auto& [p0, p1, p2, black] = planes_;
    switch (t) {
      case PieceType::Pawn:
        return p0 & ~(p1 | p2);
      case PieceType::Knight:
        return p0 & p1;
      case PieceType::Bishop:
        return p1 & ~(p0 | p2);
      case PieceType::Rook:
        return p2 & ~(p0 | p1);
      case PieceType::Queen:
        return p1 & p2;
      case PieceType::King:
        return p0 & p2;
      default:
        return 0;
    }
  }
  TAHL_INLINE Bitboard pieces(Color c, PieceType t) const {
    return c == Color::White ? pieces(t) & ~planes_[3] : pieces(t) & planes_[3];
  }
  // Bishops and queens, rooks and queens, of both colours.
  TAHL_INLINE Bitboard diagonal_sliders() const { return planes_[1] & ~planes_[0]; }
  TAHL_INLINE Bitboard straight_sliders() const { return planes_[2] & ~planes_[0]; }
  // The four bitboards themselves: code bits 0, 1, 2, and black.
  TAHL_INLINE const Bitboard (&planes() const)[4] { return planes_; }
  PieceType type_on(Square s) const;  // None if empty
  Piece piece_on(Square s) const;
  TAHL_INLINE Square king(Color c) const { return first_square(pieces(c, PieceType::King)); }

  // The rook that `c` may castle with on that side of his king, or kNoSquare without the right.
  TAHL_INLINE Square castling_rook(Color c, CastlingSide side) const {
    return castling_rook_[index(c) * 2 + static_cast<int>(side)];
  }
  TAHL_INLINE bool can_castle(Color c, CastlingSide side) const {
    return castling_rook(c, side) != kNoSquare;
  }
  // The rooks that may castle and their kings, of both colours.
  TAHL_INLINE Bitboard castling_men() const { return castling_men_; }

  // The square behind a pawn that has just made a double step, whether or not it can be captured;
  // else kNoSquare.
  TAHL_INLINE Square en_passant_square() const { return en_passant_; }
  // True if some en passant capture is legal. FEN output and key() mention the square only then.
  TAHL_INLINE bool en_passant_is_legal() const { return en_passant_legal_; }

  // Plies since the last capture or pawn move.
  int halfmove_clock() const { return static_cast<int>(halfmove_clock_); }
  int fullmove_number() const { return static_cast<int>(fullmove_number_); }

  // Zobrist key of pieces, side, castling rights, and the en passant file if the capture is legal.
  TAHL_INLINE Key key() const { return key_; }

  bool is_check() const { return checkers() != 0; }
  Bitboard checkers() const;  // enemy pieces that attack the king of the side to move
  Bitboard attackers_to(Square s, Bitboard occupied) const;  // of both colours

  bool is_capture(Move m) const;
  bool gives_check(Move m) const;

  // Plays `m`. Precondition: legal here.
  void make(Move m);
  // The same, defined in make_move.h for callers that want it inlined. Without kKeyed the key is
  // not kept up to date.
  template <bool kKeyed>
  TAHL_INLINE void make_inline(Move m);
  // *this = what `m` makes of `before`, for a generator that knows what it has written: `Us` is to
  // move there, and the move is of the given class.
  enum class Known : std::uint8_t { PawnStep, DoubleStep, PawnCapture, Knight, Slider, King };
  template <Color Us, Known kKnown, bool kKeyed>
  TAHL_INLINE void set_after(const Position& before, Key passed, Move m);
  // The key with the other side to move and no en passant: what set_after wants.
  TAHL_INLINE Key key_if_passed() const;
  // Passes: side and en passant change. Precondition: not in check.
  void make_null();

  // Same pieces, side, castling and legal en passant; counters are not compared.
  bool same_as(const Position& other) const;

 private:
  friend class PositionBuilder;
  using Code = unsigned;
  static constexpr Code kPawnCode = 1, kKnightCode = 3, kKingCode = 5, kBlackCode = 8;
  static constexpr Code code_of(Color c, PieceType t);
  TAHL_INLINE Code code_on(Square s) const;
  template <bool kKeyed>
  TAHL_INLINE void toggle(Code code, Square s);
  void make_special(Move m);
  void lose_castling(Code moved, Bitboard touched);
  void refresh_castling_men();
  void refresh_en_passant();

  alignas(32) Bitboard planes_[4]{};
  Key key_ = 0;
  Bitboard castling_men_ = 0;
  Square castling_rook_[4]{kNoSquare, kNoSquare, kNoSquare, kNoSquare};  // [slot]: color * 2 + side
  std::uint32_t fullmove_number_ = 1;
  std::uint32_t halfmove_clock_ = 0;
  Square en_passant_ = kNoSquare;
  bool en_passant_legal_ = false;
  Color side_ = Color::White;
};

// Puts positions together from parts (FEN, decoders). build() needs a position that `problem()`
// accepts.
class PositionBuilder {
 public:
  // Precondition: the square is empty.
  void put(Square s, Piece p);
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
