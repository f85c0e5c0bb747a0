#include "arena/match.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "chess/movegen.h"
#include "chess/pgn.h"

namespace tahl::arena {
namespace {

Contestant contestant(const std::string& text) {
  const auto spec = search::parse_player_spec(text);
  EXPECT_TRUE(spec) << text;
  return {text, [spec = *spec] { return search::make_player(spec); }};
}

// The games of a match by number.
std::map<int, MatchGame> play(const std::string& first, const std::string& second,
                              const MatchOptions& options, const std::map<int, Result>& done = {},
                              std::stop_token stop = {}) {
  std::map<int, MatchGame> games;
  const auto played = play_match(
      contestant(first), contestant(second), options, done,
      [&](const MatchGame& g) { games.emplace(g.number, g); }, stop);
  EXPECT_TRUE(played);
  return games;
}

std::map<int, Result> results(const std::map<int, MatchGame>& games) {
  std::map<int, Result> r;
  for (const auto& [number, game] : games) r[number] = game.result;
  return r;
}

TEST(Opening, IsTheSameForTheSameSeedAndPair) {
  EXPECT_EQ(random_opening(3, 5, 8).moves(), random_opening(3, 5, 8).moves());
  EXPECT_NE(random_opening(3, 5, 8).moves(), random_opening(3, 6, 8).moves());
  EXPECT_NE(random_opening(3, 5, 8).moves(), random_opening(4, 5, 8).moves());
}

TEST(Opening, NeverEndsTheGame) {
  for (int pair = 0; pair < 300; ++pair) {
    const Game game = random_opening(1, pair, 12);
    EXPECT_EQ(game.ply(), 12);
    EXPECT_FALSE(game.outcome());
  }
}

TEST(Match, ADeterministicPlayerScoresHalfAgainstItsEqual) {
  MatchOptions options;
  options.games = 6;
  for (const char* player :
       {"minimax:depth=1", "policy:net=uniform", "mcts:net=uniform,nodes=20"}) {
    options.max_plies = 160;
    const Score score = score_of(results(play(player, player, options)));
    EXPECT_EQ(score.games(), 6);
    EXPECT_EQ(score.points(), 3) << player;
    EXPECT_EQ(score.pairs[2], 3) << player;
  }
}

TEST(Match, PlaysEveryOpeningWithBothColours) {
  MatchOptions options;
  options.games = 3;  // becomes 4
  options.max_plies = 20;
  const auto games = play("random", "minimax:depth=1", options);
  ASSERT_EQ(games.size(), 4u);
  for (const int pair : {0, 1}) {
    const auto &a = games.at(2 * pair).game.moves(), &b = games.at(2 * pair + 1).game.moves();
    EXPECT_TRUE(std::equal(a.begin(), a.begin() + 8, b.begin()));
  }
}

TEST(Match, DoesNotDependOnConcurrency) {
  MatchOptions options;
  options.games = 8;
  options.max_plies = 60;
  const auto one = play("random", "policy:net=uniform,temperature=1", options);
  options.concurrency = 3;
  const auto three = play("random", "policy:net=uniform,temperature=1", options);
  ASSERT_EQ(one.size(), three.size());
  for (const auto& [number, game] : one)
    EXPECT_EQ(game.game.moves(), three.at(number).game.moves());
}

TEST(Match, MinimaxBeatsRandom) {
  MatchOptions options;
  options.games = 6;
  const Score score = score_of(results(play("minimax:depth=2", "random", options)));
  EXPECT_GE(score.points(), 5.5);
}

TEST(Match, CallsALongGameADraw) {
  MatchOptions options;
  options.games = 2;
  options.max_plies = 12;
  for (const auto& [number, game] : play("random", "random", options)) {
    EXPECT_EQ(game.result, Result::Draw);
    EXPECT_EQ(game.termination, "max plies");
    EXPECT_EQ(game.game.ply(), 12);
  }
}

TEST(Match, LeavesOutGamesThatAreDone) {
  MatchOptions options;
  options.games = 6;
  options.max_plies = 40;
  const auto all = play("random", "random", options);
  const auto rest = play("random", "random", options, {{0, Result::Draw}, {3, Result::Draw}});
  ASSERT_EQ(rest.size(), 4u);
  for (const auto& [number, game] : rest) EXPECT_EQ(game.game.moves(), all.at(number).game.moves());
}

TEST(Match, StopsWithoutCountingTheGameInHand) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(play("random", "random", {}, {}, stop.get_token()).empty());
}

TEST(Match, ScoresFromTheFirstPlayersSide) {
  const Score score = score_of({{0, Result::WhiteWins},
                                {1, Result::WhiteWins},
                                {2, Result::Draw},
                                {3, Result::BlackWins},
                                {4, Result::BlackWins}});
  EXPECT_EQ(score.wins, 2);  // games 0 and 3
  EXPECT_EQ(score.draws, 1);
  EXPECT_EQ(score.losses, 2);  // games 1 and 4
  EXPECT_EQ(score.pairs, (std::array<int, 5>{0, 0, 1, 1, 0}));
}

class MatchFile : public testing::Test {
 protected:
  std::filesystem::path path_ = std::filesystem::path(testing::TempDir()) / "tahl-match-test.pgn";
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_F(MatchFile, IsReadBackWithoutTheGameThatWasCutOff) {
  MatchOptions options;
  options.games = 6;
  options.max_plies = 300;
  const Contestant a = contestant("minimax:depth=1"), b = contestant("random");
  const auto games = play(a.name, b.name, options);
  std::string text;
  for (const auto& [number, game] : games) text += match_pgn(game, a, b);
  text.resize(text.size() - 12);  // as a killed run leaves it
  std::ofstream(path_, std::ios::binary) << text;
  const auto read = read_match(path_, a, b, options);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 5u);
  for (const auto& [number, game] : *read) {
    EXPECT_EQ(game.game.moves(), games.at(number).game.moves());
    EXPECT_EQ(game.result, games.at(number).result);
    EXPECT_EQ(game.termination, games.at(number).termination);
  }
  const auto rest = play(a.name, b.name, options, results(*read));
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest.at(5).game.moves(), games.at(5).game.moves());
}

TEST_F(MatchFile, OfAnotherMatchIsRefused) {
  MatchOptions options;
  options.games = 2;
  options.max_plies = 20;
  const Contestant a = contestant("random"), b = contestant("minimax:depth=1");
  std::ofstream out(path_, std::ios::binary);
  for (const auto& [number, game] : play(a.name, b.name, options)) out << match_pgn(game, a, b);
  out.close();
  EXPECT_TRUE(read_match(path_, a, b, options));
  MatchOptions other_seed = options;
  other_seed.seed = 2;
  EXPECT_FALSE(read_match(path_, a, b, other_seed));
  EXPECT_FALSE(read_match(path_, b, a, options));
}

}  // namespace
}  // namespace tahl::arena
