#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <string>

namespace tahl {

using Bitboard = std::uint64_t;  // bit rank * 8 + file
using Key = std::uint64_t;

enum class Color : std::uint8_t { White, Black };
constexpr Color operator~(Color c) { return static_cast<Color>(static_cast<int>(c) ^ 1); }
constexpr int index(Color c) { return static_cast<int>(c); }

enum class PieceType : std::uint8_t { Pawn, Knight, Bishop, Rook, Queen, King, None };
constexpr int index(PieceType t) { return static_cast<int>(t); }
inline constexpr PieceType kPieceTypes[] = {PieceType::Pawn, PieceType::Knight, PieceType::Bishop,
                                            PieceType::Rook, PieceType::Queen,  PieceType::King};

struct Piece {
  PieceType type = PieceType::None;
  Color color = Color::White;
  constexpr bool operator==(const Piece&) const = default;
};

// A square is rank * 8 + file, a1 = 0, h8 = 63.
using Square = std::uint8_t;
inline constexpr Square kNoSquare = 64;
constexpr Square make_square(int file, int rank) { return static_cast<Square>(rank * 8 + file); }
constexpr int file_of(Square s) { return s & 7; }
constexpr int rank_of(Square s) { return s >> 3; }
constexpr Square mirror_rank(Square s) { return static_cast<Square>(s ^ 56); }
constexpr Bitboard bit(Square s) { return Bitboard{1} << s; }
// Rank as `c` sees it: 0 is c's own first rank.
constexpr int relative_rank(Color c, Square s) {
  return c == Color::White ? rank_of(s) : 7 - rank_of(s);
}
std::string square_name(Square s);

constexpr int popcount(Bitboard b) { return std::popcount(b); }
constexpr Square first_square(Bitboard b) { return static_cast<Square>(std::countr_zero(b)); }
constexpr Square pop_square(Bitboard& b) {
  const Square s = first_square(b);
  b &= b - 1;
  return s;
}
constexpr bool more_than_one(Bitboard b) { return (b & (b - 1)) != 0; }

inline constexpr Bitboard kFileA = 0x0101010101010101ull;
inline constexpr Bitboard kFileH = kFileA << 7;
inline constexpr Bitboard kRank1 = 0xffull;
inline constexpr Bitboard kRank8 = kRank1 << 56;
constexpr Bitboard rank_mask(int rank) { return kRank1 << (8 * rank); }
constexpr Bitboard file_mask(int file) { return kFileA << file; }

enum class MoveKind : std::uint8_t { Normal, EnPassant, Castling, Promotion };

// Sixteen bits: from 0-5, to 6-11, kind 12-13, promotion piece 14-15 (knight, bishop, rook, queen).
// Castling is written as the king taking his own rook, which also serves Chess960.
class Move {
 public:
  constexpr Move() = default;
  constexpr Move(Square from, Square to, MoveKind kind = MoveKind::Normal,
                 PieceType promotion = PieceType::Knight)
      : bits_(static_cast<std::uint16_t>(from | to << 6 | static_cast<int>(kind) << 12 |
                                         (index(promotion) - 1) << 14)) {}
  static constexpr Move from_bits(std::uint16_t bits) {
    Move m;
    m.bits_ = bits;
    return m;
  }
  constexpr Square from() const { return bits_ & 63; }
  constexpr Square to() const { return bits_ >> 6 & 63; }
  constexpr MoveKind kind() const { return static_cast<MoveKind>(bits_ >> 12 & 3); }
  constexpr bool is_promotion() const { return kind() == MoveKind::Promotion; }
  constexpr bool is_castling() const { return kind() == MoveKind::Castling; }
  constexpr bool is_en_passant() const { return kind() == MoveKind::EnPassant; }
  // PieceType::None unless a promotion.
  constexpr PieceType promotion() const {
    return is_promotion() ? static_cast<PieceType>((bits_ >> 14) + 1) : PieceType::None;
  }
  constexpr std::uint16_t bits() const { return bits_; }
  constexpr explicit operator bool() const { return bits_ != 0; }  // a1a1, the null move, is false
  constexpr bool operator==(const Move&) const = default;

 private:
  std::uint16_t bits_ = 0;
};

// At most 218 moves are legal in a reachable position; 256 leaves room for any that parse_fen lets
// in.
class MoveList {
 public:
  void push_back(Move m) {
    assert(size_ < 256);
    moves_[size_++] = m;
  }
  // For slider back ends that write moves themselves: room at the end, then how many were written.
  Move* end_for_writing() { return moves_ + size_; }
  void grow(int n) { size_ += n; }
  const Move* begin() const { return moves_; }
  const Move* end() const { return moves_ + size_; }
  Move* begin() { return moves_; }
  Move* end() { return moves_ + size_; }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Move operator[](int i) const { return moves_[i]; }
  void clear() { size_ = 0; }
  bool contains(Move m) const {
    for (Move x : *this)
      if (x == m) return true;
    return false;
  }

 private:
  Move moves_[256 + 32];  // the slack lets a vector store run past the end
  int size_ = 0;
};

}  // namespace tahl
