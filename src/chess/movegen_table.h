#pragma once

#include "chess/movegen.h"

namespace tahl {

// The generator as compiled for one instruction set.
struct MovegenTable {
  struct Backend {
    void (*legal_moves)(const Position&,
                        MoveList&) = nullptr;  // null: this set has no such back end
    std::uint64_t (*perft_counted)(const Position&, int depth) = nullptr;  // depth >= 1
    std::uint64_t (*perft_made)(const Position&, int depth) = nullptr;
  };
  const char* name;
  Backend titboard, pext, magic;
  Backend best;  // what legal_moves() and perft() use
};

extern const MovegenTable kMovegenBaseline;
#ifdef __x86_64__
extern const MovegenTable kMovegenAvx2;  // AVX2 and BMI2
#endif

}  // namespace tahl
