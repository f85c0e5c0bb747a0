#include "search/policy_player.h"

#include "search/rules.h"
#include "tests/search/search_testing.h"

namespace tahl::search {
namespace {

std::string play(const Game& game, const std::string& favourite, int finish,
                 double value_scale = 1) {
  PolicyOptions options;
  options.finish_plies = finish;
  const auto player =
      policy_player(std::make_unique<ScriptedEvaluator>(favourite, value_scale), options);
  return uci(game, player->choose(game, {}, {}).move);
}

TEST(PolicyPlayer, PlaysTheLikeliestMoveOfThePureNet) {
  EXPECT_EQ(play(Game(), "b1a3", 0), "b1a3");
  EXPECT_EQ(play(game_of("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"), "g1f1", 0), "g1f1");
}

TEST(PolicyPlayer, NeverMissesAMateInOne) {
  for (const auto& [fen, mates] : kMatesInOne) {
    if (!*mates) continue;
    const Game game = game_of(fen);
    for (const int finish : {1, 2}) EXPECT_TRUE(has_word(mates, play(game, "g1f1", finish))) << fen;
  }
}

TEST(PolicyPlayer, DoesNotStalemateWhenWinning) {
  const Game game = game_of("k7/8/8/2K5/8/8/1Q6/8 w - - 0 1");
  EXPECT_EQ(play(game, "b2b6", 0), "b2b6");
  EXPECT_NE(play(game, "b2b6", 1), "b2b6");
}

TEST(PolicyPlayer, DoesNotRepeatWhenWinning) {
  const Game game =
      game_of("4k3/8/8/8/8/8/3K4/B6B w - - 0 1", "d2e2 e8e7 e2e1 e7e8 e1e2 e8e7 e2e1 e7e8");
  EXPECT_EQ(play(game, "e1e2", 0), "e1e2");
  EXPECT_NE(play(game, "e1e2", 1), "e1e2");  // the third time
}

TEST(PolicyPlayer, DoesNotAllowAnImmediateDrawWhenWinning) {
  const Game game = game_of("8/8/8/8/3k4/8/8/K1R5 w - - 0 1");
  EXPECT_EQ(play(game, "c1c4", 0), "c1c4");
  const std::string move = play(game, "c1c4", 1);
  EXPECT_FALSE(has_word("c1c3 c1c4 c1c5", move)) << "the king takes the rook";
}

TEST(PolicyPlayer, WalksIntoNoMateThatItCanAvoid) {
  const Game game = game_of("4r1k1/5ppp/8/8/8/2B5/5PPP/6K1 w - - 0 1");  // the bishop guards e1
  EXPECT_EQ(play(game, "c3d4", 1), "c3d4");
  const std::string move = play(game, "c3d4", 2);
  Game after = game;
  after.play(*parse_uci(game.position(), move));
  EXPECT_FALSE(find_mate_in_one(after.position(), legal_moves(after.position()))) << move;
}

TEST(PolicyPlayer, MatesInTwoWhenItLooksTwoPliesAhead) {
  const Game morphy = game_of("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1");
  EXPECT_EQ(play(morphy, "a1a5", 1), "a1a5");
  EXPECT_EQ(play(morphy, "a1a5", 2), "a1a6");
}

TEST(PolicyPlayer, ReportsTheNetsProbabilities) {
  PolicyOptions options;
  const auto player = policy_player(std::make_unique<ScriptedEvaluator>("e2e4"), options);
  Limits limits;
  limits.multi_pv = 5;
  int reports = 0;
  const Choice choice = player->choose(Game(), limits, {}, [&](const Info& info) {
    ++reports;
    EXPECT_EQ(info.lines.size(), 5u);
  });
  EXPECT_EQ(reports, 1);
  EXPECT_EQ(choice.info.lines[0].moves[0], choice.move);
  double sum = 0;
  for (const auto& [move, p] : choice.policy) sum += p;
  EXPECT_EQ(choice.policy.size(), 20u);
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_NEAR(choice.info.lines[0].p, std::exp(6.) / (std::exp(6.) + 19), 1e-5);
}

TEST(PolicyPlayer, DrawsByTheTemperedPolicy) {
  PolicyOptions options;
  options.temperature = 2;  // exp(3) against 19
  const auto player = policy_player(std::make_unique<ScriptedEvaluator>("e2e4"), options);
  const Game game;
  constexpr int kDraws = 4000;
  int favourite = 0;
  for (int i = 0; i < kDraws; ++i)
    favourite += uci(game, player->choose(game, {}, {}).move) == "e2e4";
  const double p = std::exp(3.) / (std::exp(3.) + 19);
  EXPECT_NEAR(favourite / double{kDraws}, p, 4 * std::sqrt(p * (1 - p) / kDraws));
}

TEST(PolicyPlayer, DrawsTheSameFromTheSameSeed) {
  PolicyOptions options;
  options.temperature = 5;
  const auto a = policy_player(nn::uniform_evaluator(), options),
             b = policy_player(nn::uniform_evaluator(), options);
  a->seed(7);
  b->seed(7);
  Game game;
  for (int i = 0; i < 30 && !game.outcome(); ++i) {
    const Move m = a->choose(game, {}, {}).move;
    EXPECT_EQ(m, b->choose(game, {}, {}).move);
    game.play(m);
  }
}

TEST(PolicyPlayer, ObeysSearchMoves) {
  Limits limits;
  limits.search_moves = {*parse_uci(Position::initial(), "a2a3")};
  const auto player = policy_player(std::make_unique<ScriptedEvaluator>("e2e4"), {});
  EXPECT_EQ(uci(Game(), player->choose(Game(), limits, {}).move), "a2a3");
}

TEST(PolicyPlayer, HasNoMoveWhenTheGameIsOver) {
  const auto player = policy_player(nn::uniform_evaluator(), {});
  EXPECT_FALSE(player->choose(game_of("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1"), {}, {}).move);
}

TEST(PolicyPlayer, SolvesTheCasesOfOneMove) {
  const std::string one_move =
      "pos-stalemate-kqkp pos-stalemate-kqk pos-many-queens pos-ep-mate pos-repetition-avoid";
  for (const CaseRow& row : case_rows()) {
    if (!has_word(one_move, row.id)) continue;
    const Game game = game_of(row.fen, row.moves);
    const std::string trap = row.avoid.substr(0, row.avoid.find(' '));
    const std::string move = play(game, trap, 1);
    EXPECT_FALSE(has_word(row.avoid, move)) << row.id << ": " << move;
    if (row.kind != "repetition") {
      EXPECT_TRUE(has_word(row.best, move)) << row.id << ": " << move;
    }
  }
}

TEST(PolicyPlayer, TakesADrawWhenLosing) {
  const Game game =
      game_of("4k3/8/8/8/8/8/8/B3K2B w - - 0 1", "e1e2 e8e7 e2e1 e7e8 e1e2 e8e7 e2e1");
  EXPECT_EQ(play(game, "e7d6", 1), "e7d6");
  EXPECT_EQ(play(game, "e7d6", 2), "e7e8");  // the third time
}

}  // namespace
}  // namespace tahl::search
