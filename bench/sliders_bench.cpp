// Writing the moves of sliders: the ways that docs/titboards.md tells of, one after the other, over
// the sliders of positions a few plies from the six standard ones. Time is a slider's.
// Compiled for AVX2 and BMI2 whatever the rest of the build is for.
#include <benchmark/benchmark.h>

#include <array>
#include <random>
#include <vector>

#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/sliders.h"

namespace tahl {
namespace {

struct Slider {
  Bitboard own, enemy;
  Square from;
  bool is_bishop;
};

const std::vector<Slider>& sliders() {
  static const std::vector<Slider> all = [] {
    std::vector<Slider> found;
    std::mt19937_64 random(1961);
    for (const char* fen : {
             "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
             "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
             "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
             "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
             "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
             "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
         }) {
      for (int game = 0; game < 100; ++game) {
        Position p = parse_fen(fen).value();
        for (int ply = 0; ply < 30; ++ply) {
          const MoveList moves = legal_moves(p);
          if (moves.empty()) break;
          p.make(moves[static_cast<int>(random() % static_cast<unsigned>(moves.size()))]);
          const Bitboard own = p.pieces(p.side_to_move()), enemy = p.occupied() & ~own;
          for (Bitboard b = p.diagonal_sliders() & own; b;)
            found.push_back({own, enemy, pop_square(b), true});
          for (Bitboard b = p.straight_sliders() & own; b;)
            found.push_back({own, enemy, pop_square(b), false});
        }
      }
    }
    return found;
  }();
  return all;
}

// ---- What the titboards of today are compared with ----

template <class Lookup>
struct BitLoop {  // attacks by occupancy, and a bitscan a move
  static Move* loop(Square from, Bitboard to, Move* out) {
    while (to) *out++ = Move(from, pop_square(to));
    return out;
  }
  static Move* write_bishop(Square from, Bitboard own, Bitboard enemy, Move* out) {
    return loop(from, Lookup::bishop_moves(from, own, enemy), out);
  }
  static Move* write_rook(Square from, Bitboard own, Bitboard enemy, Move* out) {
    return loop(from, Lookup::rook_moves(from, own, enemy), out);
  }
};

// A line's men as a number with one ternary digit a candidate: 1 own, 2 enemy.
struct Base3 {
  std::array<std::uint16_t, 128> sum{};  // [set]: its bits as ternary digits
  Base3() {
    for (unsigned set = 0; set < 128; ++set)
      for (unsigned i = 0, power = 1; i < 7; ++i, power *= 3)
        if (set >> i & 1) sum[set] = static_cast<std::uint16_t>(sum[set] + power);
  }
};
const Base3 kBase3;

std::size_t ternary(Bitboard own, Bitboard enemy, Bitboard mask) {
  return kBase3.sum[_pext_u64(own, mask)] + 2u * kBase3.sum[_pext_u64(enemy, mask)];
}

template <class F>
void for_each_ternary(int n, F f) {  // f(own set, enemy set)
  for (unsigned own = 0; own < 1u << n; ++own)
    for (unsigned enemy = 0; enemy < 1u << n; ++enemy)
      if ((own & enemy) == 0) f(own, enemy);
}

// The first form: for each square and direction a table of 3^7 move lists.
struct PerSquareTernary {
  struct List {
    std::array<std::uint16_t, 7> moves{};
    std::uint16_t count = 0;
  };
  std::vector<List> lists;
  PerSquareTernary() : lists(std::size_t{64} * 4 * 2187) {
    for (Square s = 0; s < 64; ++s) {
      for (int axis = 0; axis < 4; ++axis) {
        const Bitboard mask = kLineTables.line[s][axis].mask;
        for_each_ternary(popcount(mask), [&](unsigned own_set, unsigned enemy_set) {
          const Bitboard own = _pdep_u64(own_set, mask), enemy = _pdep_u64(enemy_set, mask);
          List& list = lists[at(s, axis) + ternary(own, enemy, mask)];
          Bitboard to = Titboard::moves(s, static_cast<Axis>(axis), own, enemy);
          while (to) list.moves[list.count++] = Move(s, pop_square(to)).bits();
        });
      }
    }
  }
  static std::size_t at(Square s, int axis) {
    return (static_cast<std::size_t>(s) * 4 + static_cast<std::size_t>(axis)) * 2187;
  }
  Move* write(Square from, int axis, Bitboard own, Bitboard enemy, Move* out) const {
    const List& list =
        lists[at(from, axis) + ternary(own, enemy, kLineTables.line[from][axis].mask)];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(&list)));
    return out + list.count;
  }
};

// One table for all lines: which candidates, by the slider's place on the line.
struct SharedTernary {
  std::vector<std::uint8_t> sets;
  std::array<std::array<std::size_t, 4>, 64> offset{};
  SharedTernary() : sets(std::size_t{36} * 2187) {
    for (Square s = 0; s < 64; ++s) {
      for (std::size_t axis = 0; axis < 4; ++axis) {
        const Line& line = kLineTables.line[s][axis];
        offset[s][axis] =
            static_cast<std::size_t>(line.titboard - kTitboardTables.sets) / 128 * 2187;
        for_each_ternary(popcount(line.mask), [&](unsigned own, unsigned enemy) {
          sets[offset[s][axis] + kBase3.sum[own] + 2u * kBase3.sum[enemy]] =
              line.titboard[TitboardTables::kOwn + own] &
              line.titboard[TitboardTables::kEnemy + enemy];
        });
      }
    }
  }
  Move* write(Square from, int axis, Bitboard own, Bitboard enemy, Move* out) const {
    const std::size_t set = sets[offset[from][static_cast<std::size_t>(axis)] +
                                 ternary(own, enemy, kLineTables.line[from][axis].mask)];
    return write_set(kLineTables.moves[from][axis], set, out);
  }
};

template <class Tables>
struct Ternary {
  static const Tables& tables() {
    static const Tables all;
    return all;
  }
  static Move* write_bishop(Square from, Bitboard own, Bitboard enemy, Move* out) {
    return tables().write(from, 3, own, enemy, tables().write(from, 2, own, enemy, out));
  }
  static Move* write_rook(Square from, Bitboard own, Bitboard enemy, Move* out) {
    return tables().write(from, 1, own, enemy, tables().write(from, 0, own, enemy, out));
  }
};

template <class Sliders>
void write_moves_of_sliders(benchmark::State& state) {
  if (!is_available(SliderBackend::Titboard)) return state.SkipWithError("no fast PEXT here");
  std::size_t expected = 0;
  for (const Slider& s : sliders())
    expected += static_cast<std::size_t>(
        popcount(s.is_bishop ? slow_bishop_attacks(s.from, s.own | s.enemy) & ~s.own
                             : slow_rook_attacks(s.from, s.own | s.enemy) & ~s.own));
  Move out[64];
  std::size_t moves = 0;
  for (auto _ : state) {
    moves = 0;
    for (const Slider& s : sliders()) {
      const Move* const end = s.is_bishop ? Sliders::write_bishop(s.from, s.own, s.enemy, out)
                                          : Sliders::write_rook(s.from, s.own, s.enemy, out);
      moves += static_cast<std::size_t>(end - out);
      benchmark::ClobberMemory();
    }
  }
  if (moves != expected) state.SkipWithError("wrong number of moves");
  const auto n = static_cast<double>(sliders().size()) * static_cast<double>(state.iterations());
  state.counters["a slider"] =
      benchmark::Counter(n, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(write_moves_of_sliders<BitLoop<Magic>>)->Name("sliders/magic, bit loop");
BENCHMARK(write_moves_of_sliders<BitLoop<Pext>>)->Name("sliders/pext, bit loop");
BENCHMARK(write_moves_of_sliders<Magic>)->Name("sliders/magic, shuffle");
BENCHMARK(write_moves_of_sliders<Pext>)->Name("sliders/pext, shuffle");
BENCHMARK(write_moves_of_sliders<Ternary<PerSquareTernary>>)
    ->Name("sliders/ternary, a table a square");
BENCHMARK(write_moves_of_sliders<Ternary<SharedTernary>>)->Name("sliders/ternary, one table");
BENCHMARK(write_moves_of_sliders<Titboard>)->Name("sliders/titboard, two binary tables");

}  // namespace
}  // namespace tahl
