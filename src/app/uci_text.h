#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chess/game.h"
#include "search/player.h"

namespace tahl::app {

// What stands between blanks (any control character counts as one, so CR and tabs do no harm).
std::vector<std::string_view> split_words(std::string_view line);
bool equal_ignoring_case(std::string_view a, std::string_view b);
// A whole decimal number; beyond the ends of the type it is clamped to them.
std::optional<std::int64_t> parse_number(std::string_view word);

// "setoption name NAME value VALUE": names with single blanks, the value as it stands.
struct SetOption {
  std::string name;
  std::string value;
};
std::optional<SetOption> parse_setoption(std::string_view line);

// What `go` asks for. `complaints` are lines for `info string`.
struct Go {
  search::Limits limits;
  std::optional<int> perft;
  std::vector<std::string> complaints;
};
Go parse_go(const std::vector<std::string_view>& words, const Game& game);

// How scores are shown.
struct InfoStyle {
  bool chess960 = false;
  bool show_wdl = false;
};
// lc0's mapping of an expected result to centipawns: 111.71 tan(1.562 value); +-12,800 at the ends.
int centipawns(double value);
// Win, draw and loss in thousandths, from the expected result alone: with p = (1 + value) / 2, two
// coins that each fall for us with p give p^2, 2p(1 - p), (1 - p)^2, whose mean is `value`.
struct Wdl {
  int win, draw, loss;
};
Wdl wdl(double value);
// One "info ..." line a variation.
std::vector<std::string> info_lines(const search::Info& info, const Position& root,
                                    const InfoStyle& style);
std::string bestmove_line(const search::Choice& choice, const Position& root, bool chess960);

// The board, FEN and checks, for the `d` command.
std::string board_text(const Position& position);

}  // namespace tahl::app
