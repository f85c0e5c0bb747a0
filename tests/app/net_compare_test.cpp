#include "app/net_compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include "chess/fen.h"
#include "chess/notation.h"

namespace tahl::app {
namespace {

TEST(Calibration, IsTheMeanGapOfItsBins) {
  Calibration c;
  EXPECT_EQ(c.expected_error(), 0);
  for (int i = 0; i < 10; ++i) c.add(.9, i < 7);  // says 0.9, comes to 0.7
  for (int i = 0; i < 30; ++i) c.add(.5, i % 2 == 0);
  EXPECT_EQ(c.count(), 40u);
  EXPECT_NEAR(c.expected_error(), .2 * 10 / 40, 1e-9);
  EXPECT_NEAR(c.mean_p(), .6, 1e-9);
  EXPECT_NEAR(c.share(), 22 / 40., 1e-9);
  c.add(1, true);
  c.add(0, false);
  EXPECT_EQ(c.count(), 42u);
}

nn::Evaluation evaluation(float value, std::vector<float> logits) {
  return {value, 0, std::move(logits)};
}

TEST(Agreement, IsWholeForANetWithItself) {
  Agreement g;
  const auto e = evaluation(.3f, {1, 2, -500});
  g.add(e, e, 1);
  g.add(e, e, std::nullopt);
  EXPECT_EQ(g.positions(), 2u);
  EXPECT_EQ(g.top1(), 1);
  EXPECT_EQ(g.kl(), 0);
  EXPECT_EQ(g.value_rmse(), 0);
  EXPECT_EQ(g.calibration_a().count(), 1u);
  EXPECT_EQ(g.calibration_a().share(), 1);
}

TEST(Agreement, GivesTheKnownValues) {
  Agreement g;
  // p = (3/4, 1/4), q = (1/2, 1/2): KL = 3/4 log 3/2 + 1/4 log 1/2.
  g.add(evaluation(.5f, {std::log(3.f), 0}), evaluation(.1f, {2, 2}), 0);
  EXPECT_NEAR(g.kl(), .75 * std::log(1.5) + .25 * std::log(.5), 1e-6);
  EXPECT_EQ(g.top1(), 1);  // the first of equals
  g.add(evaluation(0, {0, 1}), evaluation(-.3f, {1, 0}), 0);
  EXPECT_EQ(g.top1(), .5);
  EXPECT_NEAR(g.value_rmse(), std::sqrt((.4 * .4 + .3 * .3) / 2), 1e-6);
  EXPECT_NEAR(g.largest_value_difference(), .4, 1e-6);
  EXPECT_EQ(g.largest_value_position(), 0u);
  EXPECT_NEAR(g.calibration_b().share(), 1, 1e-9);
  EXPECT_NEAR(g.calibration_a().share(), .5, 1e-9);
}

TEST(Agreement, LeavesOutMovesThatOneNetCannotName) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Agreement g;
  g.add(evaluation(0, {1, 2, 5}), evaluation(0, {1, 2, kNone}), std::nullopt);
  EXPECT_NEAR(g.kl(), 0, 1e-9);
  EXPECT_EQ(g.moves_left_out(), 1u);
  EXPECT_EQ(g.top1(), 0);
  g.add(evaluation(0, {kNone}), evaluation(0, {kNone}), 0);
  EXPECT_EQ(g.kl(), 0);
}

class Samples : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    const auto path = std::filesystem::path(testing::TempDir()) / name;
    std::ofstream(path) << text;
    return path;
  }
  std::string error_of(const std::filesystem::path& path) {
    const auto some = sample_positions(path, {});
    return some ? "none" : some.error().message;
  }
};

TEST_F(Samples, ComeWithTheMovePlayedFromAPgn) {
  const auto path = write("sample.pgn", R"([Event "a"]

1. e4 e5 2. Nf3 *

[Event "b"]
[FEN "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1"]

1. O-O-O Ke7 *
)");
  const auto all = sample_positions(path, {});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 5u);
  std::string told;
  for (const SamplePosition& s : *all)
    told += fmt::format("{} {};", s.game.ply(), to_san(s.game.position(), *s.played));
  EXPECT_EQ(told, "0 e4;1 e5;2 Nf3;0 O-O-O;1 Ke7;");
}

TEST_F(Samples, AreDrawnEvenlyAndBySeed) {
  std::string text = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 *\n";
  const auto path = write("ten.pgn", text);
  std::map<int, int> drawn;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto some = sample_positions(path, {.count = 3, .seed = seed});
    ASSERT_EQ(some->size(), 3u);
    for (const SamplePosition& s : *some) ++drawn[s.game.ply()];
  }
  for (int ply = 0; ply < 10; ++ply) EXPECT_NEAR(drawn[ply], 300, 70) << ply;
  const auto a = sample_positions(path, {.count = 3, .seed = 1});
  const auto b = sample_positions(path, {.count = 3, .seed = 1});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ((*a)[i].game.ply(), (*b)[i].game.ply());
}

TEST_F(Samples, ReadFenAndEpd) {
  const auto path = write("list.epd", R"(# a comment

4k3/8/8/8/8/8/8/R3K3 w Q - 12 34
4k3/8/8/8/8/8/8/R3K3 w Q - bm O-O-O; id "one";
R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1
4k3/8/8/8/8/8/8/R3K3 b - -)");  // the third is mate
  const auto all = sample_positions(path, {});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].game.position().halfmove_clock(), 12);
  EXPECT_EQ((*all)[1].game.position().halfmove_clock(), 0);
  EXPECT_FALSE((*all)[0].played);
}

TEST_F(Samples, ComeFromShards) {
  const auto path = std::filesystem::path(testing::TempDir()) / "some.tshard";
  Game game;
  for (const char* move : {"e2e4", "c7c5", "g1f3"}) game.play(*parse_uci(game.position(), move));
  std::vector<std::uint8_t> payload;
  nn::append_game(*nn::pack_game(game), payload);
  {
    std::ofstream out(path, std::ios::binary);
    const auto write_all = [&](const auto& bytes) {
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    };
    write_all(nn::shard_header());
    write_all(nn::make_block(payload, 1, 3));
  }
  const auto all = sample_positions(path, {});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ(to_san((*all)[2].game.position(), *(*all)[2].played), "Nf3");
}

TEST_F(Samples, NameWhatIsWrong) {
  EXPECT_EQ(error_of("/no/such/file.pgn"), "/no/such/file.pgn: there is no such file or folder");
  const auto bad = write("bad.epd", "4k3/8/8/8/8/8/8/R3K3 w Q -\nnonsense\n");
  EXPECT_EQ(error_of(bad).find(bad.string() + ": line 2: fen: "), 0u) << error_of(bad);
  const auto empty = write("empty.pgn", "");
  EXPECT_EQ(error_of(empty), empty.string() + ": there are no positions in it");
  const auto binary = write("binary.epd", std::string(100'000, 'x'));
  EXPECT_NE(error_of(binary).find("line 1: longer than 65536 bytes"), std::string::npos);
}

TEST(CompareNets, StopsAndTells) {
  const auto net = nn::uniform_evaluator(), other = net->clone();
  std::vector<SamplePosition> positions(100);
  for (SamplePosition& p : positions) p.played = legal_moves(Position::initial())[3];
  std::size_t last = 0;
  const Agreement all = compare_nets(*net, *other, positions, {}, [&](std::size_t n) { last = n; });
  EXPECT_EQ(all.positions(), 100u);
  EXPECT_EQ(last, 100u);
  EXPECT_EQ(all.calibration_a().count(), 100u);
  EXPECT_EQ(all.calibration_a().share(), 0);  // the first of equals is another
  EXPECT_NEAR(all.calibration_a().expected_error(), .05, 1e-6);
  std::stop_source stop;
  const Agreement some = compare_nets(*net, *other, positions, stop.get_token(),
                                      [&](std::size_t) { stop.request_stop(); });
  EXPECT_LT(some.positions(), 100u);
}

}  // namespace
}  // namespace tahl::app
