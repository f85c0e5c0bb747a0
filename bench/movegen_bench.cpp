// Lists of legal moves, by back end, on the six positions of the Chess Programming Wiki. Whole
// trees are `tahl perft --compare`.
#include <benchmark/benchmark.h>

#include <array>

#include "chess/fen.h"
#include "chess/movegen.h"

namespace tahl {
namespace {

const std::array<Position, 6>& positions() {
  static const std::array<Position, 6> six = {
      *parse_fen("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"),
      *parse_fen("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"),
      *parse_fen("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"),
      *parse_fen("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1"),
      *parse_fen("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8"),
      *parse_fen("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10"),
  };
  return six;
}

void list_of_legal_moves(benchmark::State& state, SliderBackend backend) {
  if (!is_available(backend)) return state.SkipWithError("not on this processor");
  MoveList moves;
  std::int64_t lists = 0;
  for (auto _ : state) {
    for (const Position& p : positions()) {
      legal_moves_with(backend, p, moves);
      benchmark::DoNotOptimize(moves.size());
      ++lists;
    }
  }
  state.SetItemsProcessed(lists);
}
BENCHMARK_CAPTURE(list_of_legal_moves, titboard, SliderBackend::Titboard);
BENCHMARK_CAPTURE(list_of_legal_moves, pext, SliderBackend::Pext);
BENCHMARK_CAPTURE(list_of_legal_moves, magic, SliderBackend::Magic);

}  // namespace
}  // namespace tahl
