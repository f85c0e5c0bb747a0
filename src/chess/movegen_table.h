#pragma once

#include <span>

#include "chess/movegen.h"

namespace tahl {

// The generator as compiled for one instruction set. movegen.cpp and perft.cpp choose among them
// when the program runs; tests try each.
struct MovegenTable {
  struct Backend {
    // Null: this instruction set has no such back end.
    void (*legal_moves)(const Position&, MoveList&) = nullptr;
    std::uint64_t (*perft_counted)(const Position&, int depth) = nullptr;  // depth >= 1
    std::uint64_t (*perft_made)(const Position&, int depth) = nullptr;

    // The back end itself (chess/sliders.h), for a bishop and for a rook.
    using Moves = Bitboard (*)(Square from, Bitboard own, Bitboard enemy);
    using Count = int (*)(Square from, Bitboard own, Bitboard enemy);
    using Write = Move* (*)(Square from, Bitboard own, Bitboard enemy, Move* out);
    Moves bishop_moves = nullptr, rook_moves = nullptr;
    Count count_bishop = nullptr, count_rook = nullptr;
    Write write_bishop = nullptr, write_rook = nullptr;
  };
  const char* name;
  Backend titboard, pext, magic;
  Backend best;  // what legal_moves() and perft() use; its own sliders are null

  const Backend& operator[](SliderBackend b) const {
    return b == SliderBackend::Titboard ? titboard : b == SliderBackend::Pext ? pext : magic;
  }
};

extern const MovegenTable kMovegenBaseline;
#ifdef __x86_64__
extern const MovegenTable kMovegenAvx2;  // AVX2 and BMI2
extern const MovegenTable
    kMovegenAvx512;  // and what Ice Lake and Zen 4 brought: VBMI2, BITALG, VPOPCNTDQ
#endif

// Those that this processor can run, the best one first.
std::span<const MovegenTable* const> available_movegens();

}  // namespace tahl
