#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "chess/game.h"
#include "chess/movegen.h"
#include "chess/pgn.h"

namespace tahl::test {

// A folder of its own for a test, removed afterwards.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::random_device random;
    path = std::filesystem::temp_directory_path() /
           ("tahl-test-" + std::to_string(random()) + std::to_string(random()));
    std::filesystem::create_directories(path);
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Random games of 20 to 60 plies with random results.
inline void write_games(const std::filesystem::path& path, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::ofstream out(path);
  for (int i = 0; i < count; ++i) {
    Game game;
    const int plies = 20 + static_cast<int>(random() % 41);
    while (game.ply() < plies) {
      const MoveList legal = legal_moves(game.position());
      if (legal.empty()) break;
      game.play(legal[static_cast<int>(random() % static_cast<unsigned>(legal.size()))]);
    }
    PgnWriteOptions options;
    options.result = static_cast<Result>(random() % 3);
    out << to_pgn(game, {{"WhiteElo", "2400"}, {"BlackElo", "2300"}, {"Date", "1960.05.07"}},
                  options);
  }
}

}  // namespace tahl::test
