#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/perft.h"
#include "tests/test_paths.h"

namespace tahl {
namespace {

struct PerftCase {
  std::string fen;
  bool chess960;
  std::vector<std::pair<int, std::uint64_t>> counts;
};

// Lines "FEN ;D1 20 ;D2 400 ... ;c960", the form of the published suites.
std::vector<PerftCase> read_suite(const std::filesystem::path& path, int max_depth) {
  std::vector<PerftCase> cases;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    const std::size_t end = text.find(';');
    if (end == std::string::npos) continue;
    PerftCase c{text.substr(0, end), text.find(";c960") != std::string::npos, {}};
    for (std::size_t i = text.find('D', end); i != std::string::npos; i = text.find('D', i + 1)) {
      int depth = 0;
      unsigned long long nodes = 0;
      if (std::sscanf(text.c_str() + i, "D%d %llu", &depth, &nodes) == 2 && depth <= max_depth)
        c.counts.emplace_back(depth, nodes);
    }
    cases.push_back(c);
  }
  return cases;
}

class PerftTest : public testing::TestWithParam<SliderBackend> {
 protected:
  void check(const std::filesystem::path& path, int max_depth) {
    const auto cases = read_suite(path, max_depth);
    ASSERT_FALSE(cases.empty()) << path;
    for (const PerftCase& c : cases) {
      const auto position = parse_fen(c.fen, c.chess960);
      ASSERT_TRUE(position) << position.error().message;
      for (const auto& [depth, nodes] : c.counts)
        EXPECT_EQ(perft_with(GetParam(), *position, depth), nodes) << c.fen << " depth " << depth;
    }
  }
};

// Counts from the Chess Programming Wiki and others, agreed on by up to eleven engines.
TEST_P(PerftTest, CountsOfKnownPositionsAreExact) { check(test::data_path("perft.epd"), 4); }

TEST_P(PerftTest, CountsOfTheWholeCollectionAreExact) {
  if (const auto path = test::shared_path("cases/perft.epd")) check(*path, 99);
  if (const auto path = test::shared_path("data/suites/perft.epd")) check(*path, 5);
}

std::vector<SliderBackend> available_backends() {  // a build without BMI2 has no PEXT
  std::vector<SliderBackend> result;
  for (const SliderBackend b : kSliderBackends)
    if (is_available(b)) result.push_back(b);
  return result;
}

INSTANTIATE_TEST_SUITE_P(BackEnds, PerftTest, testing::ValuesIn(available_backends()),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

}  // namespace
}  // namespace tahl
