#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <string>

// For what the generators of moves use: they are compiled once for each instruction set, and a
// function that stayed out of line could be shared with the copy of a processor that lacks it.
#define TAHL_INLINE [[gnu::always_inline]] inline

// And what is written differently for each instruction set lies in a namespace of its own.
#if defined(__AVX512VBMI2__) && defined(__AVX512BITALG__) && defined(__AVX512VPOPCNTDQ__)
#define TAHL_ISA isa_avx512
#define TAHL_AVX512 1
#elif defined(__AVX2__) && defined(__BMI2__)
#define TAHL_ISA isa_avx2
#else
#define TAHL_ISA isa_baseline
#endif

namespace tahl {

using Bitboard = std::uint64_t;  // bit rank * 8 + file
using Key = std::uint64_t;

enum class Color : std::uint8_t { White, Black };
TAHL_INLINE constexpr Color operator~(Color c) {
  return static_cast<Color>(static_cast<int>(c) ^ 1);
}
TAHL_INLINE constexpr int index(Color c) { return static_cast<int>(c); }

enum class PieceType : std::uint8_t { Pawn, Knight, Bishop, Rook, Queen, King, None };
TAHL_INLINE constexpr int index(PieceType t) { return static_cast<int>(t); }
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
TAHL_INLINE constexpr Square make_square(int file, int rank) {
  return static_cast<Square>(rank * 8 + file);
}
TAHL_INLINE constexpr int file_of(Square s) { return s & 7; }
TAHL_INLINE constexpr int rank_of(Square s) { return s >> 3; }
TAHL_INLINE constexpr Square mirror_rank(Square s) { return static_cast<Square>(s ^ 56); }
TAHL_INLINE constexpr Bitboard bit(Square s) { return Bitboard{1} << s; }
// Rank as `c` sees it: 0 is c's own first rank.
TAHL_INLINE constexpr int relative_rank(Color c, Square s) {
  return c == Color::White ? rank_of(s) : 7 - rank_of(s);
}
std::string square_name(Square s);

TAHL_INLINE constexpr int popcount(Bitboard b) { return std::popcount(b); }
TAHL_INLINE constexpr Square first_square(Bitboard b) {
  return static_cast<Square>(std::countr_zero(b));
}
TAHL_INLINE constexpr Square pop_square(Bitboard& b) {
  const Square s = first_square(b);
  b &= b - 1;
  return s;
}
TAHL_INLINE constexpr bool more_than_one(Bitboard b) { return (b & (b - 1)) != 0; }

inline constexpr Bitboard kFileA = 0x0101010101010101ull;
inline constexpr Bitboard kFileH = kFileA << 7;
inline constexpr Bitboard kRank1 = 0xffull;
inline constexpr Bitboard kRank8 = kRank1 << 56;
TAHL_INLINE constexpr Bitboard rank_mask(int rank) { return kRank1 << (8 * rank); }
TAHL_INLINE constexpr Bitboard file_mask(int file) { return kFileA << file; }

enum class MoveKind : std::uint8_t { Normal, EnPassant, Castling, Promotion };

// Sixteen bits, a square a byte so that a byte shuffle can write moves: to 0-5, kind 6-7, from
// 8-13, promotion piece 14-15 (knight, bishop, rook, queen). Castling is written as the king taking
// his own rook, which also serves Chess960.
class Move {
 public:
  constexpr Move() = default;
  TAHL_INLINE constexpr Move(Square from, Square to, MoveKind kind = MoveKind::Normal,
                             PieceType promotion = PieceType::Knight)
      : bits_(static_cast<std::uint16_t>(to | static_cast<int>(kind) << 6 | from << 8 |
                                         (index(promotion) - 1) << 14)) {}
  TAHL_INLINE static constexpr Move from_bits(std::uint16_t bits) {
    Move m;
    m.bits_ = bits;
    return m;
  }
  TAHL_INLINE constexpr Square from() const { return bits_ >> 8 & 63; }
  TAHL_INLINE constexpr Square to() const { return bits_ & 63; }
  TAHL_INLINE constexpr MoveKind kind() const { return static_cast<MoveKind>(bits_ >> 6 & 3); }
  TAHL_INLINE constexpr bool is_promotion() const { return kind() == MoveKind::Promotion; }
  TAHL_INLINE constexpr bool is_castling() const { return kind() == MoveKind::Castling; }
  TAHL_INLINE constexpr bool is_en_passant() const { return kind() == MoveKind::EnPassant; }
  // PieceType::None unless a promotion.
  TAHL_INLINE constexpr PieceType promotion() const {
    return is_promotion() ? static_cast<PieceType>((bits_ >> 14) + 1) : PieceType::None;
  }
  TAHL_INLINE constexpr std::uint16_t bits() const { return bits_; }
  TAHL_INLINE constexpr explicit operator bool() const {
    return bits_ != 0;
  }  // a1a1, the null move, is false
  constexpr bool operator==(const Move&) const = default;

 private:
  std::uint16_t bits_ = 0;
};

// 218 legal moves are the most that is known of any position with the men that a game can have,
// which are what parse_fen lets in.
class MoveList {
 public:
  TAHL_INLINE MoveList() : size_(0) {}
  void push_back(Move m) {
    assert(size_ < kCapacity);
    moves_[size_++] = m;
  }
  TAHL_INLINE const Move* begin() const { return moves_; }
  TAHL_INLINE const Move* end() const { return moves_ + size_; }
  TAHL_INLINE Move* begin() { return moves_; }
  TAHL_INLINE Move* end() { return moves_ + size_; }
  TAHL_INLINE int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Move operator[](int i) const { return moves_[i]; }
  void clear() { size_ = 0; }
  // For who writes moves from begin() on himself; he may scribble kSlack moves past the last.
  TAHL_INLINE void set_end(const Move* end) {
    size_ = static_cast<int>(end - moves_);
    assert(size_ <= kCapacity);
  }
  bool contains(Move m) const {
    for (Move x : *this)
      if (x == m) return true;
    return false;
  }

 private:
  static constexpr int kCapacity = 256, kSlack = 32;
  union {  // so that an empty list costs nothing to make
    Move moves_[kCapacity + kSlack];
  };
  int size_;
};

}  // namespace tahl
