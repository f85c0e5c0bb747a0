#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chess/error.h"

namespace tahl::app {

// What a GUI can set. Defaults are what `option` lines say.
struct UciOptions {
  std::string player = "mcts";     // mcts, policy or minimax
  std::string net;                 // file or name of an embedded net; empty: the default
  std::string precision = "auto";  // of the net's arithmetic
  int hash = 256;  // MiB for the search tree or table; mcts keeps an eighth for the net's answers
  int threads = 1;         // of the net's passes; the search itself has one
  bool ponder = false;  // only tells that the GUI may ponder
  int multi_pv = 1;
  bool chess960 = false;
  bool show_wdl = false;
  int move_overhead = 30;  // ms kept back a move for the way to the GUI
  int temperature = 0;     // net players: hundredths; 0 plays the first choice
  int finish_plies = 1;    // policy: plies looked ahead for mates and stalemates, 0-2
  int max_depth = 0;       // cap on every search, 0 none
  int max_nodes = 0;       // cap on every search, 0 none
  int seed = 0;            // 0: another one each start
};

// What has to happen after an option has changed.
enum class OptionEffect { None, RebuildPlayer, ClearHash };

// The "option name ..." lines in answer to `uci`.
std::vector<std::string> option_lines();

// `name` in any case. Numbers beyond the range are clamped to it.
Expected<OptionEffect> set_option(UciOptions& options, std::string_view name,
                                  std::string_view value);

}  // namespace tahl::app
