#include "chess/game.h"

#include <gtest/gtest.h>

#include "chess/fen.h"
#include "chess/movegen.h"

namespace tahl {
namespace {

constexpr Square sq(const char* name) { return make_square(name[0] - 'a', name[1] - '1'); }
void shuffle_knights(Game& game) {
  game.play(Move(sq("g1"), sq("f3")));
  game.play(Move(sq("g8"), sq("f6")));
  game.play(Move(sq("f3"), sq("g1")));
  game.play(Move(sq("f6"), sq("g8")));
}
std::optional<Ending> ending(std::string_view fen) {
  const auto outcome = Game(*parse_fen(fen)).outcome();
  return outcome ? std::optional(outcome->ending) : std::nullopt;
}

TEST(Game, CountsRepetitions) {
  Game game;
  EXPECT_EQ(game.repetitions(), 1);
  shuffle_knights(game);
  EXPECT_EQ(game.repetitions(), 2);
  EXPECT_FALSE(game.outcome());
  shuffle_knights(game);
  EXPECT_EQ(game.repetitions(), 3);
  ASSERT_TRUE(game.outcome());
  EXPECT_EQ(game.outcome()->ending, Ending::ThreefoldRepetition);
  EXPECT_FALSE(game.outcome(/*claimable=*/false));
  shuffle_knights(game);
  shuffle_knights(game);
  EXPECT_EQ(game.outcome(/*claimable=*/false)->ending, Ending::FivefoldRepetition);
}

TEST(Game, AnEnPassantRightMakesAPositionDifferent) {
  // After e2e4 Black may capture d4xe3; when the position comes again he may not.
  Game game(*parse_fen("6nk/8/8/8/3p4/8/4P3/6NK w - - 0 1"));
  game.play(Move(sq("e2"), sq("e4")));
  game.play(Move(sq("g8"), sq("f6")));
  game.play(Move(sq("g1"), sq("f3")));
  game.play(Move(sq("f6"), sq("g8")));
  game.play(Move(sq("f3"), sq("g1")));
  EXPECT_EQ(game.repetitions(), 1);
}

TEST(Game, UndoReturnsToThePositionBefore) {
  Game game;
  shuffle_knights(game);
  game.undo();
  EXPECT_EQ(game.ply(), 3);
  game.undo(), game.undo(), game.undo();
  EXPECT_TRUE(game.position().same_as(Position::initial()));
}

TEST(Outcome, KnowsHowGamesEnd) {
  EXPECT_EQ(ending("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1"), Ending::Checkmate);
  EXPECT_EQ(ending("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"), Ending::Stalemate);
  EXPECT_EQ(ending("8/8/8/4k3/8/8/8/4K1N1 w - - 0 1"), Ending::InsufficientMaterial);
  EXPECT_EQ(ending("8/8/8/4k3/8/8/8/R3K3 w - - 99 80"), std::nullopt);
  EXPECT_EQ(ending("8/8/8/4k3/8/8/8/R3K3 w - - 100 80"), Ending::FiftyMoves);
  EXPECT_EQ(ending("8/8/8/4k3/8/8/8/R3K3 w - - 150 80"), Ending::SeventyFiveMoves);
}

TEST(Outcome, MateOnTheHundredthPlyIsMate) {
  const auto outcome = Game(*parse_fen("R5k1/5ppp/8/8/8/8/8/6K1 b - - 100 90")).outcome();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->result, Result::WhiteWins);
}

TEST(Outcome, MaterialThatCannotMate) {
  const auto insufficient = [](std::string_view fen) {
    return has_insufficient_material(*parse_fen(fen));
  };
  EXPECT_TRUE(insufficient("8/8/8/4k3/8/8/8/4K3 w - - 0 1"));
  EXPECT_TRUE(insufficient("8/8/8/4k3/8/8/8/4KB2 w - - 0 1"));
  EXPECT_TRUE(insufficient("5b2/8/8/4k3/8/8/8/2B1K3 w - - 0 1"));   // both on dark squares
  EXPECT_FALSE(insufficient("2b5/8/8/4k3/8/8/8/2B1K3 w - - 0 1"));  // opposite colours can mate
  EXPECT_FALSE(insufficient("5n2/8/8/4k3/8/8/8/2B1K3 w - - 0 1"));
  EXPECT_FALSE(insufficient("8/8/8/4k3/8/8/8/2NNK3 w - - 0 1"));
  EXPECT_FALSE(insufficient("8/8/8/4k3/8/8/7P/4K3 w - - 0 1"));
}

}  // namespace
}  // namespace tahl
