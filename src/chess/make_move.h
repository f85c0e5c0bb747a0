#pragma once

// Position::make_inline: how a move is played, always inlined, so that each generator has it
// compiled for its own instruction set.

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "chess/attacks.h"
#include "chess/position.h"
#include "chess/zobrist.h"

namespace tahl {

struct PlanesOfCode {
  alignas(32) Bitboard of[16][4]{};  // [code][plane]: all ones where the code has that bit
};
extern const PlanesOfCode kPlanesOfCode;

TAHL_INLINE Position::Code Position::code_on(Square s) const {
#ifdef __AVX2__
  const __m256i planes = _mm256_load_si256(reinterpret_cast<const __m256i*>(planes_));
  const __m256i on_top = _mm256_sll_epi64(planes, _mm_cvtsi32_si128(63 - s));
  return static_cast<Code>(_mm256_movemask_pd(_mm256_castsi256_pd(on_top)));
#else
  return static_cast<Code>((planes_[0] >> s & 1) | (planes_[1] >> s & 1) << 1 |
                           (planes_[2] >> s & 1) << 2 | (planes_[3] >> s & 1) << 3);
#endif
}

// Puts a man of that code there, or takes it away.
template <bool kKeyed>
TAHL_INLINE void Position::toggle(Code code, Square s) {
  for (int plane = 0; plane < 4; ++plane) planes_[plane] ^= kPlanesOfCode.of[code][plane] & bit(s);
  if constexpr (kKeyed) key_ ^= kZobrist.piece[code][s];
}

template <bool kKeyed>
TAHL_INLINE void Position::make_inline(Move m) {
  const Square from = m.from(), to = m.to();
  const Bitboard from_bit = bit(from), to_bit = bit(to);
  const Code moved = code_on(from);
  assert((moved & 7) != 0 && (moved >> 3 & 1) == static_cast<Code>(index(side_)));

  if constexpr (kKeyed) {
    if (en_passant_legal_) key_ ^= kZobrist.en_passant[file_of(en_passant_)];
    key_ ^= kZobrist.black_to_move;
  }
  en_passant_ = kNoSquare;
  en_passant_legal_ = false;
  if (m.kind() == MoveKind::Normal) [[likely]] {
    const Code taken = code_on(to);
    const Bitboard both = from_bit | to_bit;
    for (int plane = 0; plane < 4; ++plane)
      planes_[plane] ^=
          (kPlanesOfCode.of[moved][plane] & both) ^ (kPlanesOfCode.of[taken][plane] & to_bit);
    if constexpr (kKeyed)
      key_ ^= kZobrist.piece[moved][from] ^ kZobrist.piece[moved][to] ^ kZobrist.piece[taken][to];
    const bool is_pawn = (moved & 7) == kPawnCode;
    const bool restarts = static_cast<int>(taken != 0) | static_cast<int>(is_pawn);
    halfmove_clock_ = (halfmove_clock_ + 1) & (static_cast<std::uint32_t>(restarts) - 1);
    if ((both & castling_men_) != 0) lose_castling(moved, both);
    fullmove_number_ += static_cast<std::uint32_t>(index(side_));
    side_ = ~side_;
    if (is_pawn && (from ^ to) == 16) {  // a double step
      en_passant_ = static_cast<Square>((from + to) / 2);
      if ((pawn_attacks(~side_, en_passant_) & pieces(side_, PieceType::Pawn)) != 0)
        refresh_en_passant();
    }
    return;
  }
  make_special(m);
  fullmove_number_ += static_cast<std::uint32_t>(index(side_));
  side_ = ~side_;
}

TAHL_INLINE Key Position::key_if_passed() const {
  return key_ ^ kZobrist.black_to_move ^
         (en_passant_legal_ ? kZobrist.en_passant[file_of(en_passant_)] : 0);
}

template <Color Us, Position::Known kKnown, bool kKeyed>
TAHL_INLINE void Position::set_after(const Position& before, Key passed, Move m) {
  constexpr bool kCaptures = kKnown != Known::PawnStep && kKnown != Known::DoubleStep;
  constexpr bool kPawn = !kCaptures || kKnown == Known::PawnCapture;
  constexpr Code kColor = Us == Color::Black ? kBlackCode : 0;
  const Square from = m.from(), to = m.to();
  const Bitboard to_bit = bit(to), both = bit(from) | to_bit;
  Code moved = kColor;
  if constexpr (kPawn) {
    moved |= kPawnCode;
  } else if constexpr (kKnown == Known::Knight) {
    moved |= kKnightCode;
  } else if constexpr (kKnown == Known::King) {
    moved |= kKingCode;
  } else {
    moved = before.code_on(from);
  }
  Code taken = 0;
  if constexpr (kCaptures) taken = before.code_on(to);
  assert(moved == before.code_on(from) && taken == before.code_on(to));

  for (int plane = 0; plane < 4; ++plane) {
    Bitboard change = kPlanesOfCode.of[moved][plane] & both;
    if constexpr (kCaptures) change ^= kPlanesOfCode.of[taken][plane] & to_bit;
    planes_[plane] = before.planes_[plane] ^ change;
  }
  key_ = passed;
  if constexpr (kKeyed) {
    key_ ^= kZobrist.piece[moved][from] ^ kZobrist.piece[moved][to];
    if constexpr (kCaptures) key_ ^= kZobrist.piece[taken][to];
  }
  castling_men_ = before.castling_men_;
  for (int slot = 0; slot < 4; ++slot) castling_rook_[slot] = before.castling_rook_[slot];
  fullmove_number_ = before.fullmove_number_ + static_cast<std::uint32_t>(index(Us));
  if constexpr (kPawn) {
    halfmove_clock_ = 0;
  } else {
    halfmove_clock_ = (before.halfmove_clock_ + 1) & (static_cast<std::uint32_t>(taken != 0) - 1);
  }
  en_passant_ = kNoSquare;
  en_passant_legal_ = false;
  side_ = ~Us;
  if constexpr (kCaptures) {
    if ((both & castling_men_) != 0) [[unlikely]]
      lose_castling(moved, both);
  }
  if constexpr (kKnown == Known::DoubleStep) {
    en_passant_ = static_cast<Square>((from + to) / 2);
    if ((pawn_attacks(Us, en_passant_) & pieces(~Us, PieceType::Pawn)) != 0) refresh_en_passant();
  }
}

}  // namespace tahl
