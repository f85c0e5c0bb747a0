#pragma once

#include <cstdint>

#include "chess/position.h"

namespace tahl {

// All legal moves, castling as king takes rook. The build's slider back end (chess/sliders.h).
MoveList legal_moves(const Position& position);
void legal_moves(const Position& position, MoveList& out);
bool is_legal(const Position& position, Move m);
bool has_legal_move(const Position& position);

enum class SliderBackend : std::uint8_t { Magic, Pext };
bool is_available(SliderBackend backend);  // PEXT needs a build that targets BMI2
// The same moves in the same order through a chosen back end. Precondition: it is available.
void legal_moves_with(SliderBackend backend, const Position& position, MoveList& out);

// Leaves of the legal move tree `depth` plies deep; the last ply is counted, not played.
std::uint64_t perft(const Position& position, int depth);
std::uint64_t perft_with(SliderBackend backend, const Position& position, int depth);

}  // namespace tahl
