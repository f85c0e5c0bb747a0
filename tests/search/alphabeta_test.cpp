#include "search/alphabeta.h"

#include <algorithm>

#include "search/rules.h"
#include "tests/search/search_testing.h"

namespace tahl::search {
namespace {

// Minimax as defined: no pruning above the leaves, no table, no ordering, and a leaf's captures cut
// only where they cannot count. What AlphaBeta must equal.
int plain_quiescence(const Position& p, int ply, int alpha = -kMateScore, int beta = kMateScore) {
  const bool in_check = p.is_check();
  int best = in_check ? ply - kMateScore : stand_pat(p);
  MoveList moves;
  quiescence_moves(p, moves);
  for (const Move m : moves) {
    if (best >= beta) break;
    Position next = p;
    next.make(m);
    best = std::max(best, -plain_quiescence(next, ply + 1, -beta, -std::max(alpha, best)));
  }
  return best;
}

int plain_minimax(Game& game, int depth, int ply) {
  const MoveList moves = legal_moves(game.position());
  if (moves.empty()) return game.position().is_check() ? ply - kMateScore : 0;
  if (ply > 0 && is_search_draw(game, 0)) return 0;
  if (depth == 0) return plain_quiescence(game.position(), ply);
  int best = -kMateScore;
  for (const Move m : moves) {
    game.play(m);
    best = std::max(best, -plain_minimax(game, depth - 1, ply + 1));
    game.undo();
  }
  return best;
}

int score_of(const Line& line) {
  if (line.mate_in)
    return *line.mate_in > 0 ? kMateScore - (2 * *line.mate_in - 1)
                             : -kMateScore - 2 * *line.mate_in;
  return *line.centipawns;
}

Choice search(const Game& game, int depth, int multi_pv = 1) {
  AlphaBetaOptions options;
  options.hash_megabytes = 1;
  Limits limits;
  limits.depth = depth;
  limits.multi_pv = multi_pv;
  return alphabeta_player(options)->choose(game, limits, {});
}

// The first two are so full of captures that two plies must do.
const char* const kPositions[] = {
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "8/8/8/8/8/1K6/p2Q4/k7 w - - 0 1",
    "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1",
    "3rr1k1/5pp1/p4P1p/P7/8/6bP/6P1/7K w - - 0 37",
    "8/8/7k/R7/1R6/8/8/6K1 w - - 0 1",
    "8/5k2/8/8/8/3K4/5P2/8 w - - 98 80",
};

TEST(AlphaBeta, EqualsPlainMinimaxAtEveryDepth) {
  for (const char* fen : kPositions) {
    const int deepest = fen == kPositions[0] || fen == kPositions[1] ? 2 : 3;
    for (int depth = 1; depth <= deepest; ++depth) {
      Game game = game_of(fen);
      const Choice choice = search(game, depth);
      const int expected = plain_minimax(game, depth, 0);
      ASSERT_FALSE(choice.info.lines.empty());
      EXPECT_EQ(score_of(choice.info.lines[0]), expected) << fen << " depth " << depth;
      // The move is worth it too.
      game.play(choice.move);
      EXPECT_EQ(-plain_minimax(game, depth - 1, 1), expected) << fen << " depth " << depth;
    }
  }
}

TEST(AlphaBeta, LinesOfMultiPvAreEachTheBestOfTheRest) {
  Game game = game_of(kPositions[2]);
  const Choice choice = search(game, 2, 5);
  ASSERT_EQ(choice.info.lines.size(), 5u);
  std::vector<int> scores;
  for (const Move m : legal_moves(game.position())) {
    game.play(m);
    scores.push_back(-plain_minimax(game, 1, 1));
    game.undo();
  }
  std::sort(scores.rbegin(), scores.rend());
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(score_of(choice.info.lines[i]), scores[i]) << i;
}

TEST(AlphaBeta, LinesCanBePlayed) {
  for (const char* fen : kPositions) {
    const Choice choice = search(game_of(fen), 4, 3);
    for (const Line& line : choice.info.lines) {
      Position p = position_of(fen);
      for (const Move m : line.moves) {
        ASSERT_TRUE(is_legal(p, m)) << fen;
        p.make(m);
      }
      if (line.mate_in && *line.mate_in > 0) {
        EXPECT_EQ(static_cast<int>(line.moves.size()), 2 * *line.mate_in - 1) << fen;
      }
    }
  }
}

TEST(AlphaBeta, PlaysEveryMateInOne) {
  for (const auto& [fen, mates] : kMatesInOne) {
    if (!*mates) continue;
    const Game game = game_of(fen);
    const Choice choice = search(game, 3);
    EXPECT_TRUE(has_word(mates, uci(game, choice.move))) << fen;
    EXPECT_EQ(choice.info.lines[0].mate_in, 1) << fen;
  }
}

TEST(AlphaBeta, EndsWhenDepthIsBeyondTheMate) {
  const Choice choice = search(game_of("3rr1k1/5pp1/p4P1p/P7/8/6bP/6P1/7K w - - 0 37"), 100);
  EXPECT_EQ(choice.info.lines[0].mate_in, -1);
  EXPECT_LT(choice.info.depth, 10);
}

TEST(AlphaBeta, FindsMorphysMateInTwo) {
  const Game game = game_of("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1");
  AlphaBetaOptions options;
  Limits limits;
  limits.mate = 2;
  const Choice choice = alphabeta_player(options)->choose(game, limits, {});
  EXPECT_EQ(uci(game, choice.move), "a1a6");
  EXPECT_EQ(choice.info.lines[0].mate_in, 2);
}

TEST(AlphaBeta, LooksForNoLongerMateThanAsked) {
  AlphaBetaOptions options;
  Limits limits;
  limits.mate = 1;
  const Choice choice = alphabeta_player(options)->choose(Game(), limits, {});  // ends
  EXPECT_TRUE(choice.move);
}

TEST(AlphaBeta, ObeysSearchMoves) {
  Limits limits;
  limits.depth = 2;
  const Game game = game_of("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1");
  limits.search_moves = {*parse_uci(game.position(), "h2h3"), *parse_uci(game.position(), "g1f1")};
  const Choice choice = alphabeta_player({})->choose(game, limits, {});
  EXPECT_TRUE(has_word("h2h3 g1f1", uci(game, choice.move)));
}

TEST(AlphaBeta, AnswersThoughStoppedAtOnce) {
  std::stop_source stop;
  stop.request_stop();
  Limits limits;
  limits.infinite = true;
  const Choice choice = alphabeta_player({})->choose(Game(), limits, stop.get_token());
  EXPECT_TRUE(is_legal(Position::initial(), choice.move));
}

TEST(AlphaBeta, HasNoMoveWhenTheGameIsOver) {
  const Choice choice = search(game_of("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1"), 3);
  EXPECT_FALSE(choice.move);
}

TEST(AlphaBeta, CountsNodesWithinTheLimit) {
  Limits limits;
  limits.nodes = 5000;
  EXPECT_LE(alphabeta_player({})->choose(Game(), limits, {}).info.nodes, 5001);
}

TEST(AlphaBeta, PlaysTheSameGameAgain) {
  const auto a = alphabeta_player({}), b = alphabeta_player({});
  Limits limits;
  limits.depth = 3;
  Game game;
  for (int i = 0; i < 12; ++i) {
    const Move m = a->choose(game, limits, {}).move;
    EXPECT_EQ(m, b->choose(game, limits, {}).move);
    game.play(m);
  }
}

TEST(AlphaBeta, SolvesTheCasesWithinItsReach) {
  const std::string reachable =
      "pos-mate-knight-h3 pos-fork-d4 pos-underpromotion-knight pos-promotion-capture-draws "
      "pos-stalemate-kqkp pos-stalemate-kqk pos-many-queens pos-castling-double-attack "
      "pos-ep-mate pos-zugzwang-ng4 pos-repetition-avoid pos-repetition-claim pos-fifty-rd4 "
      "pos-promotion-swap-first";
  for (const CaseRow& row : case_rows()) {
    if (!has_word(reachable, row.id)) continue;
    const Game game = game_of(row.fen, row.moves);
    const std::string move = uci(game, search(game, 6).move);
    if (!row.best.empty()) {
      EXPECT_TRUE(has_word(row.best, move)) << row.id << ": " << move;
    }
    EXPECT_FALSE(has_word(row.avoid, move)) << row.id << ": " << move;
  }
}

}  // namespace
}  // namespace tahl::search
