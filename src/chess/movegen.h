#pragma once

#include <cstdint>
#include <string_view>

#include "chess/position.h"

namespace tahl {

// All legal moves, castling as king takes rook. How they are found is chosen by the processor that
// the program runs on; the set of moves is the same everywhere, their order is not.
MoveList legal_moves(const Position& position);
void legal_moves(const Position& position, MoveList& out);  // in place of what `out` held
bool is_legal(const Position& position, Move m);            // at the cost of a list
bool has_legal_move(const Position& position);

enum class SliderBackend : std::uint8_t { Titboard, Pext, Magic };
inline constexpr SliderBackend kSliderBackends[] = {SliderBackend::Titboard, SliderBackend::Pext,
                                                    SliderBackend::Magic};
std::string_view to_string(SliderBackend backend);  // "titboard", "pext", "magic"
// Titboards and PEXT need a processor with BMI2 whose PEXT is no microcode (AMD before Zen 3 has
// such).
bool is_available(SliderBackend backend);
// The same moves through a chosen back end. Precondition: it is available.
void legal_moves_with(SliderBackend backend, const Position& position, MoveList& out);

// What the generator was compiled for, of what this processor offers: "AVX2", "baseline".
std::string_view movegen_instruction_set();

}  // namespace tahl
