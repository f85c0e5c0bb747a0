#include "nn/lc0_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "chess/fen.h"
#include "nn/cpu_network.h"
#include "nn/evaluator.h"
#include "nn/policy_map.h"
#include "tests/nn/lc0_testing.h"

namespace tahl::nn {
namespace {

using testing::Bytes;
using testing::bytes_from;
using testing::gzip;
using testing::lc0_configs;
using testing::lc0_message;
using testing::Lc0Writing;
using testing::Message;
using testing::Numbers;
using testing::random_net;

// What the reader makes of the config: it says how wide things are, not from what that was derived.
ArchConfig as_read(ArchConfig config) {
  if (config.se) config.se_width = se_hidden(config);
  return config;
}

void expect_same(const NetFile& got, const NetFile& want, float relative, float absolute) {
  EXPECT_EQ(to_json(got.arch), to_json(as_read(want.arch)));
  EXPECT_TRUE(check_tensors(got));
  for (const auto& [name, tensor] : want.tensors) {
    ASSERT_TRUE(got.tensors.contains(name)) << name;
    const auto& numbers = got.tensors.at(name).data;
    ASSERT_EQ(numbers.size(), tensor.data.size()) << name;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      ASSERT_NEAR(numbers[i], tensor.data[i], absolute + relative * std::abs(tensor.data[i]))
          << name;
  }
}

TEST(Lc0File, ReadsEveryPolicyAndValueInEveryKindOfNumbers) {
  for (const ArchConfig& config : lc0_configs()) {
    const NetFile net = random_net(config, 1);
    for (const auto& [numbers, relative, absolute] : {std::tuple(Numbers::Linear16, 0.f, 5e-5f),
                                                      {Numbers::Float16, 1e-3f, 1e-4f},
                                                      {Numbers::Bfloat16, 8e-3f, 0.f},
                                                      {Numbers::Float32, 0.f, 0.f}}) {
      const auto got = read_net(gzip(lc0_message(net, {.numbers = numbers}).text()), "x");
      ASSERT_TRUE(got) << got.error().message;
      expect_same(*got, net, relative, absolute);
      EXPECT_EQ(got->encoding, "lc0-112");
      EXPECT_EQ(got->metadata.at("license"), "GPL-3.0");
      EXPECT_EQ(got->metadata.at("training_steps"), "1000");
    }
  }
}

TEST(Lc0File, FoldsNorms) {
  const NetFile net = random_net(lc0_configs()[0], 2);
  for (const bool gammas : {true, false}) {
    const auto got =
        read_net(bytes_from(lc0_message(net, {.norms = true, .gammas = gammas}).text()), "x");
    ASSERT_TRUE(got) << got.error().message;
    expect_same(*got, net, 1e-5f, 1e-6f);
  }
}

TEST(Lc0File, CutsThePaddingOffThePlanes) {
  const NetFile net = random_net(lc0_configs()[1], 3);
  const auto got = read_net(bytes_from(lc0_message(net, {.planes = 80}).text()), "x");
  ASSERT_TRUE(got) << got.error().message;
  expect_same(*got, net, 0, 0);
}

TEST(Lc0File, ComesBackFromSafetensors) {
  for (const ArchConfig& config : lc0_configs()) {
    const auto net =
        read_net(bytes_from(lc0_message(random_net(config, 4), {.input = 4}).text()), "x");
    ASSERT_TRUE(net) << net.error().message;
    const auto again = read_net(to_bytes(*net), "y");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->arch, net->arch);
    EXPECT_EQ(again->encoding, "lc0-112-hectoplies");
    EXPECT_EQ(again->metadata, net->metadata);
    EXPECT_EQ(to_bytes(*again), to_bytes(*net));
  }
}

// The whole way, in every encoding: a position with castling, promotions and captures by promotion
// gets a logit for each legal move, and the sum of win, draw and loss is one.
TEST(Lc0File, NetsThinkOfAnyMove) {
  const auto position = parse_fen("r3k2r/1P4P1/8/3pP3/8/8/1p4p1/R3K2R w KQkq d6 0 1");
  ASSERT_TRUE(position);
  const Game game(*position);
  const MoveList legal = legal_moves(*position);
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("tahl_lc0_{}.pb.gz", ::getpid());
  for (const ArchConfig& config : lc0_configs()) {
    for (int input = 1; input <= 5; ++input) {
      const Bytes bytes = gzip(lc0_message(random_net(config, 5), {.input = input}).text());
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      const auto evaluator = load_evaluator(path.string(), {.precision = Precision::Fp32});
      ASSERT_TRUE(evaluator) << evaluator.error().message;
      const Evaluation evaluation = (*evaluator)->evaluate(game, legal);
      ASSERT_EQ(evaluation.logits.size(), static_cast<std::size_t>(legal.size()));
      for (const float logit : evaluation.logits) EXPECT_TRUE(std::isfinite(logit));
      EXPECT_EQ(evaluation.draw > 0, config.wdl);
      EXPECT_LE(std::abs(evaluation.value) + evaluation.draw, 1.00001f);
    }
  }
  std::filesystem::remove(path);
}

std::string complaint(const Message& message) {
  const auto net = read_net(bytes_from(message.text()), "x");
  return net ? "no complaint" : net.error().message;
}

TEST(Lc0File, SaysWhatItDoesNotRun) {
  const NetFile net = random_net(lc0_configs()[2], 6);
  EXPECT_EQ(complaint(lc0_message(net, {.network = 6})),
            "net: x: is a transformer (attention body), which Tahl does not run");
  EXPECT_EQ(complaint(lc0_message(net, {.network = 134})),
            "net: x: is a transformer (attention body), which Tahl does not run");
  EXPECT_EQ(complaint(lc0_message(net, {.network = 5})),
            "net: x: is an ONNX model, which Tahl does not run");
  EXPECT_EQ(complaint(lc0_message(net, {.input = 132})),
            "net: x: lc0: its input is of kind 132, unknown here");
  const auto with = [](int field) {
    return Message().fixed32(1, 0x1c0).message(10, Message().bytes(field, ""));
  };
  EXPECT_EQ(complaint(with(27)),
            "net: x: is a transformer (attention body), which Tahl does not run");
  EXPECT_EQ(complaint(with(21)),
            "net: x: has transformer layers in its policy, which Tahl does not run");
  EXPECT_EQ(complaint(with(45)), "net: x: has several heads, which Tahl does not run");
  EXPECT_EQ(complaint(with(1)), "net: x: lc0: stem has 0 weights, for 112 channels");
  EXPECT_EQ(complaint(Message().fixed32(1, 0x1c0)), "net: x: lc0: has no weights");
}

TEST(Lc0File, RefusesWhatIsCutOrDamaged) {
  ArchConfig config{.family = "lc0", .input_planes = 112, .channels = 1, .blocks = 1};
  config.policy_head = "planes73";
  config.value_channels = config.value_hidden = 1;
  const Bytes whole = bytes_from(lc0_message(random_net(config, 7)).text());
  ASSERT_TRUE(read_net(whole, "x"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto net = read_net(std::span(whole).first(size), "x");
    ASSERT_FALSE(net) << size;
    EXPECT_EQ(net.error().message.find('\n'), std::string::npos);
  }
  const Bytes packed = gzip(lc0_message(random_net(config, 7)).text());
  for (std::size_t size = 0; size < packed.size(); size += 37)
    EXPECT_FALSE(read_net(std::span(packed).first(size), "x")) << size;
  Bytes longer = packed;
  longer.push_back(0);
  EXPECT_EQ(read_net(longer, "x").error().message, "net: x: gzip: 1 bytes after the end");
  EXPECT_EQ(read_net(gzip("hello"), "x").error().message, "net: x: gzip, but no lc0 net in it");
}

TEST(Lc0File, RefusesToUnpackWithoutEnd) {
  const std::string zeros(std::size_t{64} << 20, '\0');
  const auto net = read_net(gzip(zeros), "x");
  ASSERT_FALSE(net);
  EXPECT_TRUE(net.error().message.starts_with("net: x: gzip: unpacks to more than "))
      << net.error().message;
}

}  // namespace
}  // namespace tahl::nn
