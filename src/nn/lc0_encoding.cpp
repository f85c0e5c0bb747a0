#include "nn/lc0_encoding.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace tahl::nn {
namespace {

constexpr int kHistory = 8;           // positions, the present one first
constexpr int kPlanesAPosition = 13;  // six kinds of ours, six of theirs, repetition
constexpr int kAuxiliary = kHistory * kPlanesAPosition;

bool is_canonical(Lc0Format format) { return format >= Lc0Format::Canonical; }

bool same_castling(const Position& a, const Position& b) {
  for (const Color c : {Color::White, Color::Black})
    for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen})
      if (a.can_castle(c, side) != b.can_castle(c, side)) return false;
  return true;
}

bool anyone_castles(const Position& p) { return p.castling_men() != 0; }

// Whether Leela Chess Zero takes note of the double step that led to positions[i]: if a pawn stands
// beside the one that made it, be it pinned or not; and of one that the FEN names in any case.
bool notes_en_passant(const std::vector<Position>& positions, std::size_t i) {
  const Position& p = positions[i];
  if (p.en_passant_square() == kNoSquare) return false;
  if (i == 0) return true;
  const Bitboard pawn = bit(p.en_passant_square() ^ 8);
  const Bitboard beside = (pawn & ~kFileA) >> 1 | (pawn & ~kFileH) << 1;
  return (beside & p.pieces(p.side_to_move(), PieceType::Pawn)) != 0;
}

// Whether positions[i] had been on the board before. The clock bounds the search, also where a
// FEN's clock says that there were moves which we do not know.
bool is_repeated(const std::vector<Position>& positions, std::size_t i) {
  const Position& p = positions[i];
  if (p.halfmove_clock() < 4) return false;
  for (std::size_t distance = 4; distance <= i; distance += 2) {
    const std::size_t j = i - distance;
    if (positions[j].key() == p.key() && positions[j].same_as(p) &&
        notes_en_passant(positions, j) == notes_en_passant(positions, i))
      return true;
    if (positions[j].halfmove_clock() < 2) return false;
  }
  return false;
}

Bitboard in_frame(Bitboard squares, Frame frame) {
  Bitboard result = 0;
  while (squares != 0) result |= bit(frame(pop_square(squares)));
  return result;
}

// For a king on the diagonal: whether the transposed board comes first, which is decided by the
// first of these sets that the transposition changes.
bool transposed_is_smaller(const Position& p, Frame frame) {
  const Bitboard sets[] = {p.occupied(),
                           p.pieces(p.side_to_move()),
                           p.pieces(PieceType::King),
                           p.pieces(PieceType::Queen),
                           p.pieces(PieceType::Rook),
                           p.pieces(PieceType::Knight),
                           p.pieces(PieceType::Bishop)};
  const Frame other{frame.flip, true};
  for (const Bitboard set : sets) {
    const Bitboard plain = in_frame(set, frame), transposed = in_frame(set, other);
    if (plain != transposed) return transposed < plain;
  }
  return false;
}

}  // namespace

// The canonical board has our king on the files e to h; without pawns, on the ranks 1 to 4 and on
// or below the diagonal from h1 to e4. With castling rights nothing is turned: the two sides
// differ.
Frame lc0_frame(Lc0Format format, const Position& position) {
  Frame frame = mover_frame(position);
  if (!is_canonical(format) || anyone_castles(position)) return frame;
  const Square king = position.king(position.side_to_move());
  if (file_of(frame(king)) < 4) frame.flip ^= 7;
  if (position.pieces(PieceType::Pawn) != 0) return frame;
  if (rank_of(frame(king)) >= 4) frame.flip ^= 56;
  const int beyond = file_of(frame(king)) + rank_of(frame(king)) - 7;
  frame.transposed = beyond > 0 || (beyond == 0 && transposed_is_smaller(position, frame));
  return frame;
}

void encode_lc0(Lc0Format format, const Game& game, std::span<float> out) {
  assert(out.size() == kLc0Planes * 64);
  const std::vector<Position>& positions = game.positions();
  const int last = static_cast<int>(positions.size()) - 1;
  const Position& now = positions.back();
  const Color us = now.side_to_move();
  const Frame frame = lc0_frame(format, now);

  std::ranges::fill(out, 0.f);
  const auto fill = [&](int plane, float x) {
    std::fill_n(&out[static_cast<std::size_t>(plane) * 64], 64, x);
  };
  const auto put = [&](int plane, Bitboard squares) {
    float* const board = &out[static_cast<std::size_t>(plane) * 64];
    while (squares != 0) board[frame(pop_square(squares))] = 1;
  };

  // Before the first position that we know comes that position again, without the double step that
  // it may begin with: a net is not used to boards without a past. Only before the start position
  // of chess there is nothing.
  const bool starts_at_the_start = game.start().same_as(Position::initial());
  for (int i = 0, at = last; i < kHistory; ++i, --at) {
    const auto k = static_cast<std::size_t>(std::max(at, 0));
    const Position& p = positions[k];
    if (is_canonical(format) &&
        (!same_castling(p, now) || (at != last && notes_en_passant(positions, k))))
      break;
    if (at < 0 && starts_at_the_start) break;
    const bool repeated = is_repeated(positions, k);
    if (format == Lc0Format::CanonicalV2 && !repeated && i > 0) {
      if (at <= 0 || p.halfmove_clock() == 0) break;
      --i;
      continue;
    }
    int plane = i * kPlanesAPosition;
    for (const Color c : {us, ~us}) {
      for (const PieceType t : kPieceTypes) {
        Bitboard men = p.pieces(c, t);
        if (at < 0 && t == PieceType::Pawn && c != p.side_to_move() &&
            p.en_passant_square() != kNoSquare) {
          const Bitboard behind = bit(p.en_passant_square());
          men ^= behind << 8 | behind >> 8;
        }
        put(plane++, men);
      }
    }
    if (repeated) fill(plane, 1);
    if (is_canonical(format) && p.halfmove_clock() == 0) break;
  }

  if (format == Lc0Format::Classical) {
    int plane = kAuxiliary;
    for (const Color c : {us, ~us})
      for (const CastlingSide side : {CastlingSide::Queen, CastlingSide::King})
        fill(plane++, now.can_castle(c, side) ? 1 : 0);
  } else {
    for (const Color c : {us, ~us}) {
      for (const CastlingSide side : {CastlingSide::Queen, CastlingSide::King})
        if (now.can_castle(c, side))
          put(kAuxiliary + (side == CastlingSide::King), bit(now.castling_rook(c, side)));
    }
  }
  if (!is_canonical(format)) {
    fill(kAuxiliary + 4, us == Color::Black ? 1 : 0);
  } else if (notes_en_passant(positions, positions.size() - 1)) {
    // Marked where the pawn came from, beyond the edge: on our eighth rank.
    put(kAuxiliary + 4,
        bit(make_square(file_of(now.en_passant_square()), us == Color::White ? 7 : 0)));
  }
  const auto clock = static_cast<float>(now.halfmove_clock());
  fill(kAuxiliary + 5, format >= Lc0Format::Hectoplies ? clock / 100 : clock);
  fill(kAuxiliary + 7, 1);  // the plane before stays empty
}

}  // namespace tahl::nn
