#pragma once

#include "chess/position.h"

namespace tahl::search {

// A hand-written evaluation in centipawns for the side to move: material and piece-square tables,
// mobility, pawn structure, rooks on open files, king safety, each for middlegame and endgame and
// blended by the material left. Antisymmetric but for 10 centipawns for having the move. Not for
// positions in check or the end of the game.
int static_eval(const Position& position);

// Material of `c` in centipawns.
int material(const Position& position, Color c);

// The expected result, -1 to 1, of an advantage: the logistic curve on which 400 points are odds of
// ten to one.
double expected_result(int centipawns);

}  // namespace tahl::search
