#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/notation.h"
#include "nn/evaluator.h"
#include "tests/test_paths.h"

namespace tahl::nn {
namespace {

// lc0 computes some of what it prints with rough functions: 2^(n + f) as 2^n (1 + f (1 - k + k f)),
// log2 likewise, 0.2 % off at most. To compare more closely than that, the same is done here.
double rough_exp(double x) {
  const double bits = x / std::log(2.0), n = std::floor(bits), f = bits - n;
  return std::ldexp(1 + f * (0.6602339 + 0.33976606 * f), static_cast<int>(n));
}
double rough_log(double x) {
  int n = 0;
  const double f = 2 * std::frexp(x, &n) - 1;
  return std::log(2.0) * (f * (1.3465552 - 0.34655523 * f) + n - 1);
}
std::vector<double> printed_policy(const std::vector<float>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) sum += p.emplace_back(rough_exp(logit - largest));
  for (double& x : p) x *= 100 / sum;
  return p;
}
// Win and loss go through the logistic function and back, unless one of the three is extreme.
struct Printed {
  double wl, d;
};
Printed printed_value(double wl, double d) {
  const double win = (1 - d + wl) / 2, loss = (1 - d - wl) / 2, edge = 1e-4;
  if (std::min({win, d, loss}) <= edge || std::max({win, d, loss}) >= 1 - edge) return {wl, d};
  const auto there_and_back = [](double p) { return 1 / (1 + rough_exp(rough_log(1 / p - 1))); };
  const double w = there_and_back(win), l = there_and_back(loss);
  return {w - l, std::max(0.0, 1 - w - l)};
}

// Rows made by lc0 0.33-dev (commit 909a408, backend blas, one node) with a Maia net: the
// percentage of every legal move, rounded to 0.01, win - loss, draw, and the move it would play.
class Maia : public ::testing::TestWithParam<const char*> {};

TEST_P(Maia, ThinksWhatLc0SaysItThinks) {
  const std::string name = GetParam();
  const auto rows = test::shared_path("golden/" + name + ".jsonl");
  const auto net = test::shared_path("data/maia/" + name + ".pb.gz");
  if (!rows || !net) GTEST_SKIP() << "no ../shared here";
  const auto evaluator = load_evaluator(net->string(), {.precision = Precision::Fp32});
  ASSERT_TRUE(evaluator) << evaluator.error().message;

  std::ifstream file(*rows);
  int count = 0;
  for (std::string text; std::getline(file, text); ++count) {
    const auto row = nlohmann::json::parse(text);
    Game game(*parse_fen(row["start"].get<std::string>()));
    for (const auto& move : row["moves"])
      game.play(*parse_uci(game.position(), move.get<std::string>()));
    const std::string where = row["fen"];
    const MoveList legal = legal_moves(game.position());
    const Evaluation evaluation = (*evaluator)->evaluate(game, legal);
    const Printed printed = printed_value(evaluation.value, evaluation.draw);
    EXPECT_NEAR(printed.wl, row["wl"].get<double>(), 0.0001) << where;
    EXPECT_NEAR(printed.d, row["d"].get<double>(), 0.001) << where;

    const std::vector<double> p = printed_policy(evaluation.logits);
    ASSERT_EQ(p.size(), row["policy_percent"].size()) << where;
    std::size_t top = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (p[i] > p[top]) top = i;
      // In this column castling is the king taking his rook.
      const std::string move = to_uci(game.position(), legal[static_cast<int>(i)], true);
      ASSERT_TRUE(row["policy_percent"].contains(move)) << where << move;
      EXPECT_NEAR(p[i], row["policy_percent"][move].get<double>(), 0.02) << where << move;
    }
    EXPECT_EQ(to_uci(game.position(), legal[static_cast<int>(top)]), row["bestmove"]) << where;
  }
  EXPECT_GE(count, 94);
}

INSTANTIATE_TEST_SUITE_P(Nets, Maia, ::testing::Values("maia-1100", "maia-1500", "maia-1900"),
                         [](const auto& test) { return "Maia" + std::string(test.param + 5); });

}  // namespace
}  // namespace tahl::nn
