#include "nn/net_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "nn/safetensors.h"
#include "tests/nn/net_testing.h"

namespace tahl::nn {
namespace {

using testing::random_net;

const ArchConfig kSmall{.channels = 4, .blocks = 1, .value_channels = 1, .value_hidden = 2};

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tahl-net-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(NetFile, GivesBackWhatWasWritten) {
  const Folder folder;
  NetFile net = random_net(kSmall, 1);
  net.metadata["data"] = "games of 2026";
  ASSERT_TRUE(write_net(net, folder / "a.safetensors"));
  const auto again = read_net(folder / "a.safetensors");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->arch, net.arch);
  EXPECT_EQ(again->encoding, net.encoding);
  EXPECT_EQ(again->metadata, net.metadata);
  for (const auto& [name, tensor] : net.tensors) {
    EXPECT_EQ(again->tensors.at(name).data, tensor.data) << name;
  }
  EXPECT_EQ(to_bytes(*again), to_bytes(net));
}

TEST(NetFile, WritingReplacesTheOldFileAndLeavesNothingBeside) {
  const Folder folder;
  ASSERT_TRUE(write_net(random_net(kSmall, 1), folder / "a"));
  ASSERT_TRUE(write_net(random_net(kSmall, 2), folder / "a"));
  EXPECT_EQ(read_net(folder / "a")->tensors.at("value_fc2.bias").data,
            random_net(kSmall, 2).tensors.at("value_fc2.bias").data);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(NetFile, WritingIntoNoFolderIsOneLine) {
  const auto done = write_net(random_net(kSmall, 1), "/nonexistent/folder/net");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "net: /nonexistent/folder/net: cannot create: No such file or directory");
}

std::string problem_of(const NetFile& net) {
  const auto read = read_net(to_bytes(net), "x");
  return read ? "none" : read.error().message;
}

TEST(NetFile, NamesTheFirstTensorThatDoesNotFit) {
  NetFile missing = random_net(kSmall, 1);
  missing.tensors.erase("tower.0.bn2.bias");
  EXPECT_EQ(problem_of(missing), "net: x: tensor tower.0.bn2.bias is missing");

  NetFile extra = random_net(kSmall, 1);
  extra.tensors["tower.1.bn2.bias"] = {{1}, {0}};
  EXPECT_EQ(problem_of(extra),
            "net: x: tensor \"tower.1.bn2.bias\" has no place in the architecture");

  NetFile wrong = random_net(kSmall, 1);
  wrong.tensors["policy_planes.bias"] = {{3, 4}, std::vector<float>(12)};
  EXPECT_EQ(problem_of(wrong), "net: x: tensor policy_planes.bias is [3, 4], not [12]");

  NetFile infinite = random_net(kSmall, 1);
  infinite.tensors["value_fc2.bias"].data[0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(problem_of(infinite), "net: x: tensor value_fc2.bias contains inf");
}

TEST(NetFile, RefusesOtherFilesInOneLine) {
  EXPECT_EQ(read_net(testing::bytes_from("hello"), "x").error().message,
            "net: x: neither safetensors nor an RDTChess checkpoint nor an lc0 net");
  EXPECT_EQ(read_net(testing::Bytes{}, "x").error().message,
            "net: x: neither safetensors nor an RDTChess checkpoint nor an lc0 net");
  EXPECT_EQ(read_net(write_safetensors({{}, {{"a", {{1}, {0}}}}}), "x").error().message,
            "net: x: its metadata names no arch: not a net of ours");
  EXPECT_FALSE(read_net(std::filesystem::path("/nonexistent")));
  EXPECT_FALSE(read_net(std::filesystem::temp_directory_path()));
}

// As narrow as RDTChess's plain network can be.
const ArchConfig kPlain{.channels = 3, .blocks = 1, .policy_head = "fromto4096"};

TEST(NetFile, BecomesACheckpointAndComesBack) {
  const NetFile net = random_net(kPlain, 4);
  const auto bytes = to_checkpoint(net);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(*to_checkpoint(net), *bytes);
  const auto again = read_net(*bytes, "x");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(policy_channels(again->arch), 32);
  EXPECT_EQ(again->arch.channels, 3);
  EXPECT_EQ(again->arch.blocks, 1);
  ASSERT_EQ(again->tensors.size(), net.tensors.size());
  for (const auto& [name, tensor] : net.tensors) {
    EXPECT_EQ(again->tensors.at(name).shape, tensor.shape) << name;
    EXPECT_EQ(again->tensors.at(name).data, tensor.data) << name;
  }
}

TEST(NetFile, BecomesNoCheckpointIfRdtChessCouldNotBuildIt) {
  const auto problem = [](auto change) {
    NetFile net = random_net(kPlain, 4);
    change(net);
    const auto bytes = to_checkpoint(net);
    return bytes ? "none" : bytes.error().message;
  };
  const std::string cannot = "RDTChess's plain network cannot be this one: ";
  EXPECT_EQ(problem([](NetFile& net) { net.arch.policy_head = "planes12"; }),
            cannot + "policy head planes12");
  EXPECT_EQ(problem([](NetFile& net) { net.arch.se = true; }), cannot + "squeeze-and-excitation");
  EXPECT_EQ(problem([](NetFile& net) { net.arch.gate = true; }), cannot + "a gate");
  EXPECT_EQ(problem([](NetFile& net) { net.arch.recurrence = 2; }), cannot + "recurrence");
  EXPECT_EQ(problem([](NetFile& net) { net.arch.policy_channels = 8; }),
            cannot + "8 policy channels");
  EXPECT_EQ(problem([](NetFile& net) { net.arch.value_hidden = 64; }),
            cannot + "16 value channels, 64 hidden");
  EXPECT_EQ(problem([](NetFile& net) { net.encoding = "other"; }),
            cannot + "encoding other of 19 planes");
  EXPECT_EQ(problem([](NetFile& net) { net.tensors.erase("stem.1.bias"); }),
            "tensor stem.1.bias is missing");
}

TEST(NetFile, MayStoreWeightsAsHalves) {
  const NetFile net = random_net(kSmall, 6);
  for (const NumberType type : {NumberType::F16, NumberType::BF16}) {
    const auto again = read_net(to_bytes(net, type), "x");
    ASSERT_TRUE(again) << again.error().message;
    for (const auto& [name, tensor] : net.tensors) {
      const std::vector<float>& stored = again->tensors.at(name).data;
      const float step = tensor.shape.size() < 2 ? 0 : type == NumberType::F16 ? 0x1p-11f : 0x1p-8f;
      for (std::size_t i = 0; i < stored.size(); ++i)
        ASSERT_NEAR(stored[i], tensor.data[i], std::abs(tensor.data[i]) * step + step * 1e-4f);
    }
  }
}

}  // namespace
}  // namespace tahl::nn
