#include "search/rules.h"

#include "tests/search/search_testing.h"

namespace tahl::search {
namespace {

TEST(Rules, FindsExactlyTheMatesInOneThatThereAre) {
  for (const auto& [fen, mates] : kMatesInOne) {
    const Position position = position_of(fen);
    for (const Move m : legal_moves(position)) {
      MoveList one;
      one.push_back(m);
      EXPECT_EQ(find_mate_in_one(position, one).has_value(), has_word(mates, to_uci(position, m)))
          << fen << " " << to_uci(position, m);
    }
  }
}

TEST(Rules, FindsMatesInTwoAndThree) {
  // Paul Morphy's problem: 1. Ra6! bxa6 2. b7#.
  const Position morphy = position_of("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1");
  EXPECT_TRUE(find_mate(morphy, legal_moves(morphy), 1).empty());
  const std::vector<Move> line = find_mate(morphy, legal_moves(morphy), 3);
  ASSERT_EQ(line.size(), 3u);
  EXPECT_EQ(to_uci(morphy, line[0]), "a1a6");
  // Two rooks walk a king to the edge: mate in two, not in one.
  const Position ladder = position_of("8/8/7k/R7/1R6/8/8/6K1 w - - 0 1");
  EXPECT_EQ(find_mate(ladder, legal_moves(ladder), 3).size(), 3u);
}

TEST(Rules, GivesUpWhenTold) {
  const Position& start = Position::initial();
  EXPECT_TRUE(find_mate(start, legal_moves(start), 9, [] { return true; }).empty());
}

TEST(Rules, SecondOccurrenceInsideTheTreeIsADraw) {
  Game game = game_of("4k3/8/8/8/8/8/3K4/B6B w - - 0 1", "d2e2 e8e7 e2d2 e7e8");
  EXPECT_TRUE(is_search_draw(game, 0));   // the first was the root
  EXPECT_FALSE(is_search_draw(game, 1));  // the first was before the root
}

TEST(Rules, ThirdOccurrenceIsADrawWhereverTheFirstWere) {
  Game game = game_of("4k3/8/8/8/8/8/3K4/B6B w - - 0 1", "d2e2 e8e7 e2d2 e7e8 d2e2 e8e7 e2d2 e7e8");
  EXPECT_TRUE(is_search_draw(game, 8));
}

TEST(Rules, FiftyMovesAndDeadMaterialAreDraws) {
  EXPECT_TRUE(is_search_draw(game_of("4k3/8/8/8/8/8/3K4/7R w - - 100 80"), 0));
  EXPECT_FALSE(is_search_draw(game_of("4k3/8/8/8/8/8/3K4/7R w - - 99 80"), 0));
  EXPECT_TRUE(is_search_draw(game_of("4k3/8/8/8/8/8/3K4/7N w - - 0 80"), 0));
}

}  // namespace
}  // namespace tahl::search
