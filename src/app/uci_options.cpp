#include "app/uci_options.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <variant>

#include "app/uci_text.h"
#include "nn/evaluator.h"

namespace tahl::app {
namespace {

using Member =
    std::variant<std::monostate, bool UciOptions::*, int UciOptions::*, std::string UciOptions::*>;

struct OptionRow {
  std::string_view name;
  Member member;  // none: a button
  int min = 0, max = 0;
  std::initializer_list<std::string_view> choices = {};  // a string with choices is a combo
  OptionEffect effect = OptionEffect::None;
};

constexpr int kMostNumber = 2'147'483'647;

// In the order in which GUIs list them.
const OptionRow kOptions[] = {
    {"Player",
     &UciOptions::player,
     0,
     0,
     {"mcts", "policy", "minimax"},
     OptionEffect::RebuildPlayer},
    {"Net", &UciOptions::net, 0, 0, {}, OptionEffect::RebuildPlayer},
    {"Precision",
     &UciOptions::precision,
     0,
     0,
     {"auto", "fp32", "bf16", "int8"},
     OptionEffect::RebuildPlayer},
    {"Hash", &UciOptions::hash, 1, 65536, {}, OptionEffect::RebuildPlayer},
    {"Clear Hash", {}, 0, 0, {}, OptionEffect::ClearHash},
    {"Threads", &UciOptions::threads, 1, 64, {}, OptionEffect::RebuildPlayer},
    {"Ponder", &UciOptions::ponder},
    {"MultiPV", &UciOptions::multi_pv, 1, 218},
    {"Move Overhead", &UciOptions::move_overhead, 0, 10000},
    {"Temperature", &UciOptions::temperature, 0, 1000, {}, OptionEffect::RebuildPlayer},
    {"FinishPlies", &UciOptions::finish_plies, 0, 2, {}, OptionEffect::RebuildPlayer},
    {"MaxDepth", &UciOptions::max_depth, 0, 1000},
    {"MaxNodes", &UciOptions::max_nodes, 0, kMostNumber},
    {"Seed", &UciOptions::seed, 0, kMostNumber, {}, OptionEffect::RebuildPlayer},
    {"UCI_Chess960", &UciOptions::chess960},
    {"UCI_ShowWDL", &UciOptions::show_wdl},
};
// Tells, and cannot be set.
constexpr std::string_view kAboutName = "UCI_EngineAbout";
constexpr std::string_view kAbout =
    "Tahl " TAHL_VERSION ": attacks as Tal did and moves as people do; GPL-3.0-or-later";

std::string line_for(const OptionRow& row) {
  const UciOptions defaults;
  if (const auto* flag = std::get_if<bool UciOptions::*>(&row.member))
    return fmt::format("option name {} type check default {}", row.name, defaults.*(*flag));
  if (const auto* number = std::get_if<int UciOptions::*>(&row.member))
    return fmt::format("option name {} type spin default {} min {} max {}", row.name,
                       defaults.*(*number), row.min, row.max);
  if (const auto* text = std::get_if<std::string UciOptions::*>(&row.member)) {
    const std::string& value = defaults.*(*text);
    if (row.choices.size() == 0)
      return fmt::format("option name {} type string default {}", row.name,
                         value.empty() ? "<empty>" : value);
    std::string line = fmt::format("option name {} type combo default {}", row.name, value);
    for (const std::string_view choice : row.choices) line += fmt::format(" var {}", choice);
    return line;
  }
  return fmt::format("option name {} type button", row.name);
}

}  // namespace

std::vector<std::string> option_lines() {
  std::vector<std::string> lines;
  for (const OptionRow& row : kOptions) lines.push_back(line_for(row));
  lines.push_back(fmt::format("option name {} type string default {}", kAboutName, kAbout));
  return lines;
}

Expected<OptionEffect> set_option(UciOptions& options, std::string_view name,
                                  std::string_view value) {
  const auto* row = std::find_if(std::begin(kOptions), std::end(kOptions), [&](const OptionRow& r) {
    return equal_ignoring_case(r.name, name);
  });
  if (row == std::end(kOptions)) {
    if (equal_ignoring_case(name, kAboutName)) return OptionEffect::None;
    return fail("setoption: there is no option {}", quoted(name));
  }
  if (const auto* flag = std::get_if<bool UciOptions::*>(&row->member)) {
    const bool on = equal_ignoring_case(value, "true");
    if (!on && !equal_ignoring_case(value, "false"))
      return fail("setoption {}: {} is neither true nor false", row->name, quoted(value));
    options.*(*flag) = on;
  } else if (const auto* number = std::get_if<int UciOptions::*>(&row->member)) {
    const std::optional<std::int64_t> given = parse_number(value);
    if (!given) return fail("setoption {}: {} is no number", row->name, quoted(value));
    options.*(*number) = static_cast<int>(std::clamp<std::int64_t>(*given, row->min, row->max));
  } else if (const auto* text = std::get_if<std::string UciOptions::*>(&row->member)) {
    if (row->choices.size() == 0) {
      options.*(*text) = value == "<empty>" ? "" : value;
    } else {
      const auto* choice =
          std::find_if(row->choices.begin(), row->choices.end(),
                       [&](std::string_view c) { return equal_ignoring_case(c, value); });
      if (choice == row->choices.end())
        return fail("setoption {}: there is no {}", row->name, quoted(value));
      options.*(*text) = *choice;
    }
  }
  return row->effect;
}

}  // namespace tahl::app
