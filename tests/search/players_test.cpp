#include <gmock/gmock.h>

#include "tests/search/search_testing.h"

namespace tahl::search {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto spec = parse_player_spec(text);
  if (!spec) return spec.error().message;
  const auto player = make_player(*spec);
  return player ? "" : player.error().message;
}

TEST(Players, ReadsKindAndOptions) {
  const auto spec = parse_player_spec("mcts:net=a:b.safetensors,nodes=800");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->kind, "mcts");
  ASSERT_EQ(spec->options.size(), 2u);
  EXPECT_EQ(spec->options[0].second, "a:b.safetensors");
  EXPECT_EQ(spec->options[1].first, "nodes");
}

TEST(Players, NamesWhatIsWrong) {
  EXPECT_THAT(error_of("maximin"),
              HasSubstr("\"maximin\" is none of policy, mcts, minimax, random"));
  EXPECT_THAT(error_of("minimax:depth"), HasSubstr("\"depth\" is not name=value"));
  EXPECT_THAT(error_of("minimax:deep=3"), HasSubstr("minimax has no option \"deep\""));
  EXPECT_THAT(error_of("minimax:depth=0"), HasSubstr("depth=\"0\" is not a number from 1"));
  EXPECT_THAT(error_of("minimax:depth=3x"), HasSubstr("depth=\"3x\""));
  EXPECT_THAT(error_of("policy:net=uniform,finish=3"), HasSubstr("finish=\"3\""));
  EXPECT_THAT(error_of("policy:net=uniform,temperature=nan"), HasSubstr("temperature=\"nan\""));
  EXPECT_THAT(error_of("mcts:net=/does/not/exist.safetensors"),
              HasSubstr("/does/not/exist.safetensors"));
  EXPECT_THAT(error_of("policy:net=uniform,precision=fp8"),
              HasSubstr("precision \"fp8\" is none of auto, fp32, bf16, int8"));
  EXPECT_THAT(error_of("policy:net=uniform,threads=0"), HasSubstr("threads=\"0\""));
  EXPECT_THAT(error_of("policy:net=uniform,cache=3"), HasSubstr("no option \"cache\""));
  EXPECT_THAT(error_of(""), HasSubstr("is none of"));
}

TEST(Players, MakesEveryKind) {
  for (const char* text : {"policy:net=uniform", "mcts:net=uniform,nodes=10",
                           "mcts:net=uniform,nodes=10,cache=0,precision=fp32,threads=2",
                           "minimax:depth=1", "random"}) {
    const auto player = make_player(*parse_player_spec(text));
    ASSERT_TRUE(player) << text;
    const Choice choice = (*player)->choose(Game(), {}, {});
    EXPECT_TRUE(is_legal(Position::initial(), choice.move)) << text;
    EXPECT_FALSE((*player)->name().empty());
  }
}

TEST(Players, KnowsWhichComeToAnEnd) {
  EXPECT_TRUE(is_bounded(*parse_player_spec("policy")));
  EXPECT_TRUE(is_bounded(*parse_player_spec("random:seed=3")));
  EXPECT_TRUE(is_bounded(*parse_player_spec("minimax:depth=2")));
  EXPECT_FALSE(is_bounded(*parse_player_spec("minimax")));
  EXPECT_FALSE(is_bounded(*parse_player_spec("mcts:hash=10")));
}

TEST(Players, RandomDrawsFromTheLegalMovesBySeed) {
  const auto a = *make_player(*parse_player_spec("random:seed=3")),
             b = *make_player(*parse_player_spec("random:seed=3"));
  Game game;
  for (int i = 0; i < 40 && !game.outcome(); ++i) {
    const Move m = a->choose(game, {}, {}).move;
    EXPECT_EQ(m, b->choose(game, {}, {}).move);
    ASSERT_TRUE(is_legal(game.position(), m));
    game.play(m);
  }
}

}  // namespace
}  // namespace tahl::search
