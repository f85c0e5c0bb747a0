#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "chess/error.h"
#include "chess/game.h"
#include "chess/movegen.h"

namespace tahl::nn {

// How a network sees the squares: ranks or files may be swapped, and then the board transposed
// about the diagonal from a8 to h1.
struct Frame {
  Square flip = 0;  // ^ 56 swaps ranks, ^ 7 files
  bool transposed = false;

  Square operator()(Square s) const {
    s ^= flip;
    return transposed ? make_square(7 - rank_of(s), 7 - file_of(s)) : s;
  }
};
// The side to move plays up the board.
inline Frame mover_frame(const Position& position) {
  return {static_cast<Square>(position.side_to_move() == Color::White ? 0 : 56)};
}

// How a game is written for networks, by the name that their files give it.
struct Encoding {
  std::string_view name;
  int planes;
  // Writes [planes][64] row-major, a1 first, in the frame. Precondition: out.size() fits.
  void (*encode)(const Game& game, std::span<float> out);
  Frame (*frame)(const Position& position);
};
std::span<const Encoding> encodings();
const Encoding* find_encoding(std::string_view name);  // nullptr if there is none

inline constexpr int kMaxPlanes = 112;

// How one plane is known without 64 floats: a set of squares, or one number on all of them.
struct Plane {
  Bitboard squares = 0;  // where it is 1, bit rank * 8 + file in the mover's frame
  float constant = 0;    // added on every square
  bool is_constant = false;
};

// rdt19, RDTChess's input. Frame: the side to move is White playing up the board; for Black every
// square is mirrored (square ^ 56) and the colours swap. Planes: 0-5 our P N B R Q K, 6-11 theirs,
// 12-13 our right to castle king's and queen's side, 14-15 theirs, 16 the square behind a pawn that
// has just made a double step (capture possible or not), 17 halfmove clock / 100, 18 one if the
// position has been on the board before.
inline constexpr int kRdt19Planes = 19;
std::vector<Plane> rdt19_planes(const Game& game);

// Writes the planes into `out`, [19][64] row-major, a1 first, in the mover's frame.
// Precondition: out.size() == 19 * 64.
void encode_rdt19(const Game& game, std::span<float> out);

// A form of the same that is quick to copy: squares of planes 0-16, then the two constants.
struct PackedPlanes {
  Bitboard squares[17];
  float fifty, repetition;
};
PackedPlanes pack_rdt19(const Position& position, bool repeated);
void unpack_rdt19(const PackedPlanes& packed, std::span<float> out);

}  // namespace tahl::nn
