#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "chess/error.h"
#include "chess/game.h"

namespace tahl::app {

// The position a command is about, as the user gives it: [FEN] [--moves UCI...].
struct GameArgument {
  std::vector<std::string>
      fen;  // one argument, or the FEN's words as separate ones; empty: the start position
  std::vector<std::string> moves;  // each one move or several between blanks
  bool chess960 = false;

  void add_to(CLI::App& command);
  // The game after the moves. An error names the FEN's field or the move and its number.
  Expected<Game> game() const;
};

}  // namespace tahl::app
