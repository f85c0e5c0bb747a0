// Faulty PGN files made after public bug reports, where the collection lies beside the checkout.
// Every expected outcome there was computed with another program (python-chess); how they are
// written is in cases/README.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "chess/fen.h"
#include "chess/pgn.h"
#include "tests/test_paths.h"

namespace tahl {
namespace {

using Json = nlohmann::json;

struct Facts {
  Json values;  // the same keys as in the file
  std::vector<std::size_t> error_lines;
};

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Facts facts_of(const PgnGame& game) {
  Json clocks = Json::array(), evals = Json::array();
  for (int i = 0; i < static_cast<int>(game.moves.size()); ++i) {
    clocks.push_back(or_null(game.clock(i)));
    const auto eval = game.eval(i);
    evals.push_back(!eval ? Json()
                          : Json(eval->mate ? fmt::format("#{}", *eval->mate)
                                            : fmt::format("{}", *eval->pawns)));
  }
  Facts facts{{{"n", game.number},
               {"ply", game.moves.size()},
               {"final_fen", to_fen(game.position)},
               {"final_shredder_fen", to_fen(game.position, FenStyle::Shredder)},
               {"result", to_string(game.result)},
               {"result_from", game.has_terminator ? "terminator" : "tag"},
               {"result_tag", or_null(game.tags.find("Result"))},
               {"variations", game.variations},
               {"white", or_null(game.tags.find("White"))},
               {"white_elo", or_null(game.tags.elo(Color::White))},
               {"black_elo", or_null(game.tags.elo(Color::Black))},
               {"time_control", or_null(game.tags.known("TimeControl"))},
               {"white_bot", game.tags.find("WhiteTitle") == "BOT"},
               {"clocks", clocks},
               {"evals", evals}},
              {}};
  for (const PgnProblem& e : game.errors) facts.error_lines.push_back(e.line);
  return facts;
}

std::string first_four_fields(const std::string& fen) {
  std::size_t end = 0;
  for (int field = 0; field < 4; ++field) end = fen.find(' ', end + 1);
  return fen.substr(0, end);
}

bool errors_match(const Facts& facts, const Json& expected) {
  if (facts.error_lines.size() != expected.size()) return false;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Json& line = expected[i]["line"];  // words where it is left to the reader
    if (line.is_number() && line.get<std::size_t>() != facts.error_lines[i]) return false;
  }
  return true;
}

bool matches(const Facts& facts, const Json& expected, bool counters) {
  for (const auto& [key, value] : expected.items()) {
    if (key == "or" || (key == "final_fen" && value.is_null())) continue;
    if (key == "errors") {
      if (!errors_match(facts, value)) return false;
    } else if (key == "white_in") {
      if (std::find(value.begin(), value.end(), facts.values["white"]) == value.end()) return false;
    } else if (key == "final_fen" && !counters) {
      if (first_four_fields(value) != first_four_fields(facts.values[key])) return false;
    } else if (!facts.values.contains(key)) {
      ADD_FAILURE() << "the test does not know the key " << key;
    } else if (value.is_array() && key.ends_with("_elo")) {  // either will do
      if (std::find(value.begin(), value.end(), facts.values[key]) == value.end()) return false;
    } else if (facts.values[key] != value) {
      return false;
    }
  }
  return true;
}

bool game_matches(const Facts& facts, const Json& expected, bool counters) {
  if (matches(facts, expected, counters)) return true;
  if (!expected.contains("or")) return false;
  for (const Json& other : expected["or"])
    if (matches(facts, other, counters)) return true;
  return false;
}

// A message about the first game that differs, or an empty string.
std::string difference(const std::vector<Facts>& games, const Json& expected, bool counters,
                       bool cut) {
  for (std::size_t i = 0; i < expected.size() && i < games.size(); ++i)
    if (!game_matches(games[i], expected[i], counters))
      return "expected " + expected[i].dump() + "\nread " + games[i].values.dump() +
             " with errors in lines " + Json(games[i].error_lines).dump();
  // A file cut inside a tag may leave one empty game more, with an error.
  const bool one_broken = cut && games.size() == expected.size() + 1 &&
                          games.back().values["ply"] == 0 && !games.back().error_lines.empty();
  if (games.size() != expected.size() && !one_broken)
    return fmt::format("{} games instead of {}", games.size(), expected.size());
  return {};
}

TEST(PgnCases, AreReadAsStated) {
  const auto path = test::shared_path("cases/pgn.tsv");
  if (!path) GTEST_SKIP() << "no collection beside the checkout";
  std::ifstream table(*path);
  std::string line;
  std::getline(table, line);
  int cases = 0;
  while (std::getline(table, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '\t');) cells.push_back(cell);
    ASSERT_GE(cells.size(), 5u);
    SCOPED_TRACE(cells[0]);
    const Json expected = Json::parse(cells[4]);
    PgnOptions options;
    options.notes = true;
    auto reader = PgnReader::open(path->parent_path() / "pgn" / cells[2], options);
    ASSERT_TRUE(reader.has_value()) << reader.error().message;
    std::vector<Facts> games;
    while (const PgnGame* game = reader->next()) games.push_back(facts_of(*game));
    ++cases;
    if (expected.contains("min_games")) {
      EXPECT_GE(games.size(), expected["min_games"].get<std::size_t>());
      EXPECT_TRUE(reader->error().has_value());
      continue;
    }
    EXPECT_FALSE(reader->error().has_value());
    const bool counters = cells[1] != "null-move";
    std::string why = difference(games, expected["games"], counters, cells[1] == "truncated");
    if (expected.contains("also_ok"))
      for (const Json& other : expected["also_ok"])
        if (difference(games, other, counters, false).empty()) why.clear();
    EXPECT_EQ(why, "");
    RecordProperty(cells[0], why.empty() ? "as stated" : "differs");
  }
  EXPECT_GE(cases, 26);
}

// That collection was written by another program (pgn-extract).
TEST(PgnCases, WritesGamesByteForByteAsAnotherProgramDid) {
  const auto path = test::shared_path("data/games/lichess-titled.pgn.zst");
  if (!path) GTEST_SKIP() << "no collection beside the checkout";
  auto source = open_bytes(*path);
  ASSERT_TRUE(source.has_value());
  std::string text;
  for (std::array<char, 65536> part;;) {
    const auto n = (*source)->read(part.data(), part.size());
    ASSERT_TRUE(n.has_value());
    if (*n == 0) break;
    text.append(part.data(), *n);
  }
  PgnReader reader = PgnReader::from_text(text).value();
  std::string written;
  while (const PgnGame* game = reader.next()) {
    PgnTagList tags;
    for (const PgnTag& tag : game->tags.items) tags.emplace_back(tag.name, tag.value);
    written += to_pgn(to_game(*game), tags, {game->result, {}});
  }
  EXPECT_EQ(reader.games_seen(), 954u);
  EXPECT_TRUE(written == text);
}

}  // namespace
}  // namespace tahl
