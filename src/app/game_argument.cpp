#include "app/game_argument.h"

#include <sstream>

#include "chess/fen.h"
#include "chess/notation.h"

namespace tahl::app {

void GameArgument::add_to(CLI::App& command) {
  command
      .add_option("fen", fen, "position (one argument or six words; the start position if missing)")
      ->type_name("FEN");
  command.add_option("--moves", moves, "moves played from there, in UCI notation")
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->type_name("UCI");
}

Expected<Game> GameArgument::game() const {
  Game game(Position::initial(), chess960);
  if (!fen.empty()) {
    std::string text;
    for (const std::string& word : fen) {
      if (!text.empty()) text += ' ';
      text += word;
    }
    Expected<Position> position = parse_fen(text);
    if (!position) return tl::unexpected(position.error());
    game = Game(*position, chess960);
  }
  int number = 0;
  for (const std::string& several : moves) {
    std::istringstream words(several);
    for (std::string word; words >> word;) {
      ++number;
      const Expected<Move> move = parse_uci(game.position(), word, chess960);
      if (!move) return fail("move {}: {}", number, move.error().message);
      game.play(*move);
    }
  }
  return game;
}

}  // namespace tahl::app
