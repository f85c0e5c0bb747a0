// Reading PGN. `bench --benchmark_filter=pgn` reads games that it makes up; PGN_FILE=games.pgn.zst
// names a file of real ones instead. bench/pgn_versus_pgn_extract.sh measures against pgn-extract.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>
#include <string>

#include "chess/movegen.h"
#include "chess/pgn.h"

namespace tahl {
namespace {

// Random games of 80 plies: odder positions than people reach, the same notation.
std::string made_up_games(int count) {
  std::mt19937 random(1);
  std::string text;
  for (int i = 0; i < count; ++i) {
    Game game;
    while (game.ply() < 80) {
      const MoveList moves = legal_moves(game.position());
      if (moves.empty()) break;
      game.play(moves[static_cast<int>(random() % static_cast<unsigned>(moves.size()))]);
    }
    text += to_pgn(game, {{"WhiteElo", std::to_string(1500 + i % 1000)}});
  }
  return text;
}

void read_all(benchmark::State& state, const PgnOptions& options) {
  const char* file = std::getenv("PGN_FILE");
  static const std::string text = file ? "" : made_up_games(2000);
  double games = 0, bytes = 0, plies = 0;
  for (auto _ : state) {
    auto reader = file ? PgnReader::open(file, options) : PgnReader::from_text(text, options);
    if (!reader) return state.SkipWithError(reader.error().message.c_str());
    while (const PgnGame* game = reader->next()) plies += static_cast<double>(game->moves.size());
    games += static_cast<double>(reader->games_seen());
    bytes += static_cast<double>(reader->bytes_read());
  }
  state.counters["games/s"] = benchmark::Counter(games, benchmark::Counter::kIsRate);
  state.counters["plies/s"] = benchmark::Counter(plies, benchmark::Counter::kIsRate);
  state.counters["bytes/s"] = benchmark::Counter(bytes, benchmark::Counter::kIsRate);
}

void pgn_all_games(benchmark::State& state) { read_all(state, {}); }
BENCHMARK(pgn_all_games)->Unit(benchmark::kMillisecond);

void pgn_tags_only(benchmark::State& state) {
  PgnOptions options;
  options.wanted = [](const PgnTags&) { return false; };
  read_all(state, options);
}
BENCHMARK(pgn_tags_only)->Unit(benchmark::kMillisecond);

void pgn_with_notes(benchmark::State& state) {
  PgnOptions options;
  options.notes = true;
  read_all(state, options);
}
BENCHMARK(pgn_with_notes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tahl
