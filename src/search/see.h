#pragma once

#include "chess/position.h"

namespace tahl::search {

inline constexpr int kPieceValues[] = {100, 320, 330, 500, 950, 0, 0};  // centipawns, by PieceType
constexpr int piece_value(PieceType t) { return kPieceValues[index(t)]; }

// Static exchange evaluation: what the side to move nets in centipawns by `m` if both sides go on
// capturing on its square with the least valuable piece for as long as that pays. Pins are ignored.
int static_exchange(const Position& position, Move m);

}  // namespace tahl::search
