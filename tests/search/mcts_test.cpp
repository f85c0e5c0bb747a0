#include "search/mcts.h"

#include "nn/evaluator_cache.h"
#include "search/mcts_tree.h"
#include "search/rules.h"
#include "tests/search/search_testing.h"

namespace tahl::search {
namespace {

Limits nodes(std::int64_t n) {
  Limits limits;
  limits.nodes = n;
  return limits;
}

std::unique_ptr<Player> player(MctsOptions options = {}, const std::string& favourite = "") {
  options.tree_megabytes = 32;
  return mcts_player(std::make_unique<ScriptedEvaluator>(favourite), options);
}

TEST(Mcts, PlaysEveryMateInOneEvenWithOneNode) {
  for (const auto& [fen, mates] : kMatesInOne) {
    if (!*mates) continue;
    const Game game = game_of(fen);
    for (const int n : {1, 100}) {
      const Choice choice = player({}, "g1f1")->choose(game, nodes(n), {});
      EXPECT_TRUE(has_word(mates, uci(game, choice.move))) << fen;
      EXPECT_EQ(choice.info.lines[0].mate_in, 1) << fen;
    }
  }
}

TEST(Mcts, ProvesMatesInTwo) {
  const Game game = game_of("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1");
  const Choice choice = player()->choose(game, nodes(20'000), {});
  EXPECT_EQ(uci(game, choice.move), "a1a6");
  EXPECT_EQ(choice.info.lines[0].mate_in, 2);
  EXPECT_EQ(choice.info.lines[0].moves.size(), 3u);
  EXPECT_LT(choice.info.nodes, 20'000);  // ended on the proof
}

TEST(Mcts, SaysWhenItIsMated) {
  const Game game = game_of("3rr1k1/5pp1/p4P1p/P7/8/6bP/6P1/7K w - - 0 37");
  Limits limits;
  limits.depth = 20;
  const Choice choice = player()->choose(game, limits, {});
  EXPECT_EQ(choice.info.lines[0].mate_in, -1);
  EXPECT_TRUE(is_legal(game.position(), choice.move));
}

TEST(Mcts, AnswersMateOnlyWithinTheMovesAsked) {
  const Game game = game_of("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1");
  Limits limits;
  limits.mate = 2;
  EXPECT_EQ(player()->choose(game, limits, {}).info.lines[0].mate_in, 2);
  limits.mate = 1;
  const Choice none = player()->choose(game, limits, {});
  EXPECT_FALSE(none.info.lines[0].mate_in);
  EXPECT_TRUE(none.move);
}

TEST(Mcts, PlaysTheNetsChoiceWithOneNode) {
  EXPECT_EQ(uci(Game(), player({}, "b1a3")->choose(Game(), nodes(1), {}).move), "b1a3");
}

// A game against itself, with what the search says of every move.
std::string self_play(std::unique_ptr<nn::Evaluator> evaluator, int plies, int visits) {
  MctsOptions options;
  options.tree_megabytes = 32;
  options.temperature = 1;
  options.seed = 5;
  const auto both = mcts_player(std::move(evaluator), options);
  std::string told;
  Game game;
  while (game.ply() < plies && !game.outcome()) {
    const Choice choice = both->choose(game, nodes(visits), {});
    told += uci(game, choice.move);
    for (const auto& [move, p] : choice.policy) told += fmt::format(" {}", p);
    told += fmt::format(" {}\n", choice.info.lines[0].value);
    game.play(choice.move);
  }
  return told;
}

TEST(Mcts, PlaysTheSameWithACache) {
  EXPECT_EQ(
      self_play(std::make_unique<ScriptedEvaluator>("", .5), 60, 300),
      self_play(nn::with_cache(std::make_unique<ScriptedEvaluator>("", .5), 1 << 18), 60, 300));
  if (nn::embedded_nets().empty()) return;
  auto net = nn::load_evaluator("", {.precision = nn::Precision::Fp32});
  ASSERT_TRUE(net) << net.error().message;
  auto cached = nn::with_cache((*net)->clone(), 1 << 20);
  EXPECT_EQ(self_play(*std::move(net), 6, 100), self_play(std::move(cached), 6, 100));
}

TEST(Mcts, PolicyIsADistributionOverTheLegalMoves) {
  for (const int n : {1, 2, 50, 1000}) {
    const Choice choice = player()->choose(Game(), nodes(n), {});
    double sum = 0;
    for (const auto& [move, p] : choice.policy) {
      EXPECT_TRUE(is_legal(Position::initial(), move));
      EXPECT_GE(p, 0);
      sum += p;
    }
    EXPECT_EQ(choice.policy.size(), 20u);
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_EQ(choice.info.nodes, n);
  }
}

TEST(Mcts, SharesOfAllLinesAddUp) {
  Limits limits = nodes(500);
  limits.multi_pv = 50;
  const Choice choice = player()->choose(Game(), limits, {});
  ASSERT_EQ(choice.info.lines.size(), 20u);
  double sum = 0;
  for (const Line& line : choice.info.lines) {
    sum += line.p;
    Position p = Position::initial();
    for (const Move m : line.moves) {
      ASSERT_TRUE(is_legal(p, m));
      p.make(m);
    }
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(choice.info.lines[0].moves[0], choice.move);
  for (std::size_t i = 1; i < choice.info.lines.size(); ++i)
    EXPECT_GE(choice.info.lines[i - 1].p, choice.info.lines[i].p);
}

TEST(Mcts, WinsMaterialThatIsOffered) {
  const Game game = game_of("4k3/8/8/3q4/8/8/3R4/3RK3 w - - 0 1");
  const Choice choice = player()->choose(game, nodes(400), {});
  EXPECT_EQ(uci(game, choice.move), "d2d5");
  EXPECT_GT(choice.info.lines[0].value, .5);
}

TEST(Mcts, PlaysTheSameGameAgain) {
  MctsOptions options;
  options.seed = 5;
  options.temperature = 1;
  const auto a = player(options), b = player(options);
  Game game;
  for (int i = 0; i < 10; ++i) {
    const Choice x = a->choose(game, nodes(200), {}), y = b->choose(game, nodes(200), {});
    EXPECT_EQ(x.move, y.move);
    EXPECT_EQ(x.policy, y.policy);
    game.play(x.move);
  }
}

TEST(Mcts, KeepsTheTreeOfTheMovesPlayed) {
  const auto kept = player();
  Game game;
  const Choice first = kept->choose(game, nodes(2000), {});
  game.play(first.move);
  game.play(*first.ponder);
  Limits limits = nodes(1'000'000'000);
  limits.movetime = std::chrono::milliseconds(0);
  EXPECT_GT(kept->choose(game, limits, {}).info.nodes, 2);  // no time, and yet
  kept->new_game();
  EXPECT_EQ(kept->choose(game, limits, {}).info.nodes, 1);
}

TEST(Mcts, AReusedTreeStaysSound) {
  const auto kept = player();
  Game game;
  for (int i = 0; i < 16; ++i) {
    Limits limits = nodes(600);
    limits.multi_pv = 3;
    const Choice choice = kept->choose(game, limits, {});
    double sum = 0;
    for (const auto& [move, p] : choice.policy) sum += p;
    EXPECT_NEAR(sum, 1, 1e-6);
    for (const Line& line : choice.info.lines) {
      Position p = game.position();
      for (const Move m : line.moves) {
        ASSERT_TRUE(is_legal(p, m)) << i;
        p.make(m);
      }
    }
    game.play(choice.move);
  }
}

TEST(Mcts, AnswersThoughStoppedAtOnce) {
  std::stop_source stop;
  stop.request_stop();
  Limits limits;
  limits.infinite = true;
  const Choice choice = player()->choose(Game(), limits, stop.get_token());
  EXPECT_TRUE(is_legal(Position::initial(), choice.move));
  EXPECT_EQ(choice.info.nodes, 1);
}

TEST(Mcts, EndsWhenTheTreeIsFull) {
  MctsOptions options;
  options.tree_megabytes = 1;
  const auto small = mcts_player(nn::uniform_evaluator(), options);
  Limits limits;
  limits.depth = 90;
  const Choice choice = small->choose(Game(), limits, {});  // ends
  EXPECT_TRUE(choice.move);
  EXPECT_GT(choice.info.nodes, 500);
  EXPECT_LT(choice.info.nodes, 50'000);
}

TEST(Mcts, ObeysSearchMoves) {
  Limits limits = nodes(300);
  limits.search_moves = {*parse_uci(Position::initial(), "a2a3"),
                         *parse_uci(Position::initial(), "h2h3")};
  const Choice choice = player({}, "e2e4")->choose(Game(), limits, {});
  EXPECT_TRUE(has_word("a2a3 h2h3", uci(Game(), choice.move)));
  for (const auto& [move, p] : choice.policy)
    if (!has_word("a2a3 h2h3", uci(Game(), move))) {
      EXPECT_EQ(p, 0);
    }
}

TEST(Mcts, StopsAtTheDepthOfItsLine) {
  Limits limits;
  limits.depth = 4;
  const Choice choice = player()->choose(Game(), limits, {});
  EXPECT_GE(choice.info.depth, 4);
  EXPECT_LT(choice.info.nodes, 100'000);
}

TEST(Mcts, HasNoMoveWhenTheGameIsOver) {
  EXPECT_FALSE(player()->choose(game_of("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1"), nodes(10), {}).move);
}

TEST(Mcts, ValuesADeadDrawAtNothing) {
  const Game game = game_of("7k/8/8/8/8/8/5r2/6K1 w - - 0 1");
  const Choice takes = player()->choose(game, nodes(200), {});
  EXPECT_EQ(uci(game, takes.move), "g1f2");
  EXPECT_NEAR(takes.info.lines[0].value, 0, 1e-6);
}

TEST(Mcts, SolvesTheCasesWithinItsReach) {
  const std::string reachable =
      "pos-underpromotion-knight pos-stalemate-kqkp pos-stalemate-kqk pos-many-queens pos-ep-mate "
      "pos-zugzwang-ng4 "
      "pos-repetition-avoid pos-repetition-claim pos-fifty-rd4 pos-castling-double-attack";
  for (const CaseRow& row : case_rows()) {
    if (!has_word(reachable, row.id)) continue;
    const Game game = game_of(row.fen, row.moves);
    const std::string move = uci(game, player()->choose(game, nodes(20'000), {}).move);
    if (!row.best.empty()) {
      EXPECT_TRUE(has_word(row.best, move)) << row.id << ": " << move;
    }
    EXPECT_FALSE(has_word(row.avoid, move)) << row.id << ": " << move;
  }
}

TEST(MctsTree, KeepsExactlyTheSubtree) {
  Tree tree(1);
  const MoveList moves = legal_moves(Position::initial());
  const std::vector<float> priors(20, .05f);
  tree.add_node();
  tree.expand(0, moves, priors);
  const auto add = [&](std::uint32_t parent, int edge) {
    const std::uint32_t child = tree.add_node();
    tree.edges(tree[parent])[edge].child = child;
    return child;
  };
  const auto a = add(0, 0), b = add(0, 1);
  tree.expand(b, moves, priors);
  tree.expand(a, moves, priors);
  const auto under_b = add(b, 3), under_a = add(a, 4), repeated = add(b, 5);
  tree[under_b].visits = 7;
  tree[under_a].visits = 9;
  tree[repeated].kind = NodeKind::Leaf;
  tree[repeated].is_repetition = true;
  tree.keep_only(b);
  EXPECT_EQ(tree.size(), 3u);
  const Edge* edges = tree.edges(tree[0]);
  ASSERT_NE(edges[3].child, kNoNode);
  EXPECT_EQ(tree[edges[3].child].visits, 7u);
  ASSERT_NE(edges[5].child, kNoNode);
  EXPECT_EQ(tree[edges[5].child].kind, NodeKind::Fresh);
  EXPECT_EQ(edges[4].child, kNoNode);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(moves.contains(edges[i].move));
}

TEST(MctsTree, ProvesByTheShortestWinAndTheLongestLoss) {
  Tree tree(1);
  MoveList two;
  two.push_back(Move(8, 16));
  two.push_back(Move(9, 17));
  tree.add_node();
  tree.expand(0, two, {.5f, .5f});
  const auto a = tree.add_node(), b = tree.add_node();
  tree.edges(tree[0])[0].child = a;
  tree.edges(tree[0])[1].child = b;
  tree[a].proof = Proof::win(1);
  EXPECT_FALSE(update_proof(tree, 0));  // another move is left
  tree[b].proof = Proof::win(5);
  EXPECT_TRUE(update_proof(tree, 0));
  EXPECT_EQ(tree[0].proof, Proof::loss(6));
  tree[a].proof = Proof::loss(4);
  EXPECT_TRUE(update_proof(tree, 0));
  EXPECT_EQ(tree[0].proof, Proof::win(5));
}

}  // namespace
}  // namespace tahl::search
