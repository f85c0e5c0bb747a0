#include "chess/movegen.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "chess/movegen_table.h"
#include "chess/perft.h"

namespace tahl {
namespace {

#ifdef __x86_64__
// AMD's processors before family 19h (Zen 3) run PEXT as microcode, 20 to 300 cycles long.
bool has_fast_pext() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__builtin_cpu_supports("bmi2") || __get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kHygon = 0x6f677948;  // "Hygo", a licensed Zen 1
  const bool is_amd = ebx == signature_AMD_ebx || ebx == kHygon;
  if (!is_amd) return true;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const unsigned family = (eax >> 8 & 15) + (eax >> 20 & 255);
  return family >= 0x19;
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && has_fast_pext();
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bitalg") &&
         __builtin_cpu_supports("avx512vpopcntdq");
}
#endif

const MovegenTable& best() {
  static const MovegenTable& chosen = *available_movegens().front();
  return chosen;
}

std::uint64_t perft_by(const MovegenTable::Backend& backend, const Position& position, int depth,
                       Leaves leaves) {
  if (depth <= 0) return 1;
  return leaves == Leaves::Counted ? backend.perft_counted(position, depth)
                                   : backend.perft_made(position, depth);
}

}  // namespace

std::span<const MovegenTable* const> available_movegens() {
#ifdef __x86_64__
  static constexpr const MovegenTable* kAll[] = {&kMovegenAvx512, &kMovegenAvx2, &kMovegenBaseline};
  static const std::size_t first = has_avx512() ? 0 : has_avx2() ? 1 : 2;
  return std::span(kAll).subspan(first);
#else
  static constexpr const MovegenTable* kAll[] = {&kMovegenBaseline};
  return kAll;
#endif
}

void legal_moves(const Position& position, MoveList& out) {
  best().best.legal_moves(position, out);
}

MoveList legal_moves(const Position& position) {
  MoveList moves;
  legal_moves(position, moves);
  return moves;
}

bool is_legal(const Position& position, Move m) { return legal_moves(position).contains(m); }

bool has_legal_move(const Position& position) { return perft(position, 1) != 0; }

std::string_view to_string(SliderBackend backend) {
  switch (backend) {
    case SliderBackend::Titboard:
      return "titboard";
    case SliderBackend::Pext:
      return "pext";
    default:
      return "magic";
  }
}

bool is_available(SliderBackend backend) { return best()[backend].legal_moves != nullptr; }

void legal_moves_with(SliderBackend backend, const Position& position, MoveList& out) {
  assert(is_available(backend));
  best()[backend].legal_moves(position, out);
}

std::uint64_t perft(const Position& position, int depth, Leaves leaves) {
  return perft_by(best().best, position, depth, leaves);
}

std::uint64_t perft_with(SliderBackend backend, const Position& position, int depth,
                         Leaves leaves) {
  assert(is_available(backend));
  return perft_by(best()[backend], position, depth, leaves);
}

std::string_view movegen_instruction_set() { return best().name; }

}  // namespace tahl
