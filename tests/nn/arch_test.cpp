#include "nn/arch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/nn/net_testing.h"

namespace tahl::nn {
namespace {

// Both counts are published in the card of RDTChess2: 10.9 M and 11.05 M; the exact ones were
// counted from the plain checkpoint and from the card's description.
TEST(Arch, ParameterCountsAreThoseOfRdtChess) {
  EXPECT_EQ(parameter_count(rdtchess_config()), 10'915'809u);
  EXPECT_EQ(parameter_count(rdtchess2_config()), 11'049'313u);
}

TEST(Arch, RecurrenceAddsNoParameters) {
  ArchConfig config = rdtchess2_config();
  config.recurrence = 7;
  EXPECT_EQ(parameter_count(config), parameter_count(rdtchess2_config()));
}

// Names and shapes as PyTorch's state_dict of RDTChess has them.
TEST(Arch, NamesAndShapesAreThoseOfRdtChess) {
  const auto specs = list_parameters(rdtchess_config());
  const auto shape = [&](const std::string& name) {
    const auto found =
        std::ranges::find_if(specs, [&](const ParameterSpec& spec) { return spec.name == name; });
    return found == specs.end() ? std::vector<std::int64_t>{} : found->shape;
  };
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shape("stem.0.weight"), (Shape{128, 19, 3, 3}));
  EXPECT_EQ(shape("stem.1.running_var"), (Shape{128}));
  EXPECT_EQ(shape("tower.7.conv2.weight"), (Shape{128, 128, 3, 3}));
  EXPECT_EQ(shape("tower.0.bn1.bias"), (Shape{128}));
  EXPECT_EQ(shape("policy_conv.weight"), (Shape{32, 128, 1, 1}));
  EXPECT_EQ(shape("policy_fc.weight"), (Shape{4096, 2048}));
  EXPECT_EQ(shape("value_fc1.weight"), (Shape{128, 1024}));
  EXPECT_EQ(shape("value_fc2.bias"), (Shape{1}));
}

TEST(Arch, JsonKeepsEveryField) {
  for (const ArchConfig& config : testing::varied_configs()) {
    const auto again = arch_from_json(to_json(config));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, config);
  }
}

TEST(Arch, MissingFieldsHaveTheirDefaults) { EXPECT_EQ(*arch_from_json("{}"), ArchConfig{}); }

TEST(Arch, RefusesWhatMakesNoSenseInOneLine) {
  for (const char* text :
       {"", "[]", "{", "{\"channels\": 0}", "{\"channels\": -1}", "{\"channels\": 1e3}",
        "{\"channels\": 99999999999999999999}", "{\"channels\": \"64\"}", "{\"gate\": 1}",
        "{\"family\": \"lc0\"}", "{\"policy_head\": \"attention\"}", "{\"colour\": 3}",
        "{\"blocks\": 1000}", "{\"channels\": 1024, \"blocks\": 128}"}) {
    const auto config = arch_from_json(text);
    ASSERT_FALSE(config) << text;
    EXPECT_TRUE(config.error().message.starts_with("arch: ")) << config.error().message;
    EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(arch_from_json("{\"channels\": 0}").error().message,
            "arch: channels is 0, not 1 to 1024");
}

}  // namespace
}  // namespace tahl::nn
