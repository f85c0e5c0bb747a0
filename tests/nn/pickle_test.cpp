#include "nn/pickle.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "nn/net_file.h"
#include "tests/nn/net_testing.h"
#include "tests/test_paths.h"

namespace tahl::nn {
namespace {

using testing::Bytes;
using testing::bytes_from;
using testing::make_zip;

// A checkpoint that PyTorch wrote (tests/data/golden/rdt_tiny.py), 1 MB.
const Bytes& tiny() {
  static const Bytes bytes = testing::read_bytes(test::data_path("golden/rdt_tiny.pt.zst"));
  return bytes;
}

// One entry of it.
Bytes entry_of(const std::string& name) {
  Bytes copy = tiny();
  zip_error_t error;
  zip_t* archive = zip_open_from_source(
      zip_source_buffer_create(copy.data(), copy.size(), 0, &error), ZIP_RDONLY, &error);
  zip_stat_t stat;
  zip_stat(archive, name.c_str(), 0, &stat);
  Bytes bytes(static_cast<std::size_t>(stat.size));
  zip_file_t* file = zip_fopen(archive, name.c_str(), 0);
  zip_fread(file, bytes.data(), bytes.size());
  zip_fclose(file);
  zip_discard(archive);
  return bytes;
}

std::string problem_of_pickle(const std::string& pickle) {
  const auto parsed = parse_checkpoint(make_zip({{"a/data.pkl", bytes_from(pickle)}}));
  return parsed ? "none" : parsed.error().message;
}

// Pickle text: protocol 2, BINUNICODE strings.
std::string text(const std::string& s) {
  std::string result = "X";
  for (int shift = 0; shift < 32; shift += 8) result += static_cast<char>(s.size() >> shift);
  return result + s;
}
const std::string kBegin = "\x80\x02";

// A checkpoint with one tensor of the given size, stride and offset on a storage of four floats.
std::string one_tensor(const std::string& size, const std::string& stride,
                       const std::string& offset) {
  return kBegin + "}(" + text("network_config") + "}" + text("network") + "}(" + text("w") +
         "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" +
         text("0") + text("cpu") + "K\x04tQ" + offset + size + stride + "\x89" +
         "ccollections\nOrderedDict\n)RtRuu.";
}
Expected<Checkpoint> parse_one_tensor(const std::string& size, const std::string& stride,
                                      const std::string& offset) {
  const std::vector<float> numbers{1, 2, 3, 4};
  Bytes storage(16);
  std::memcpy(storage.data(), numbers.data(), 16);
  return parse_checkpoint(make_zip(
      {{"a/data.pkl", bytes_from(one_tensor(size, stride, offset))}, {"a/data/0", storage}}));
}

TEST(Pickle, ReadsWhatPyTorchWrote) {
  const auto checkpoint = parse_checkpoint(tiny());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->config.at("input_planes"), 19);
  EXPECT_EQ(checkpoint->config.at("action_size"), 4096);
  EXPECT_EQ(checkpoint->tensors.at("stem.1.num_batches_tracked").data, (std::vector<float>{7}));
  // rdt_tiny.py: ((i * 7 + j * 3) % 16 - 7.5) / 32
  const TensorData& policy = checkpoint->tensors.at("policy_fc.weight");
  EXPECT_EQ(policy.shape, (std::vector<std::int64_t>{4096, 64}));
  EXPECT_EQ(policy.data[5 * 64 + 3], (float{(5 * 7 + 3 * 3) % 16} - 7.5f) / 32);

  const auto net = read_net(tiny(), "tiny");
  ASSERT_TRUE(net) << net.error().message;
  EXPECT_EQ(net->arch.channels, 3);
  EXPECT_EQ(net->arch.policy_channels, 1);
  EXPECT_EQ(net->arch.policy_head, "fromto4096");
}

TEST(Pickle, FollowsStridesAndOffsets) {
  // size (2, 2), stride (1, 2): the transpose of [[1, 2], [3, 4]].
  const auto transposed =
      parse_one_tensor("K\x02K\x02\x86", "K\x01K\x02\x86", std::string("K\0", 2));
  ASSERT_TRUE(transposed) << transposed.error().message;
  EXPECT_EQ(transposed->tensors.at("w").data, (std::vector<float>{1, 3, 2, 4}));
  const auto tail = parse_one_tensor("K\x02\x85", "K\x01\x85", "K\x02");
  ASSERT_TRUE(tail) << tail.error().message;
  EXPECT_EQ(tail->tensors.at("w").data, (std::vector<float>{3, 4}));
}

TEST(Pickle, RefusesTensorsBeyondTheirStorage) {
  EXPECT_FALSE(parse_one_tensor("K\x05\x85", "K\x01\x85", std::string("K\0", 2)));
  EXPECT_FALSE(parse_one_tensor("K\x02\x85", "K\x04\x85", std::string("K\0", 2)));
  EXPECT_FALSE(parse_one_tensor("K\x02\x85", "K\x01\x85", "K\x03"));
  EXPECT_FALSE(parse_one_tensor("K\x01\x85", "K\x01\x85", "J\xff\xff\xff\xff"));
  EXPECT_FALSE(parse_one_tensor("J\xff\xff\xff\xff\x85", "K\x01\x85", std::string("K\0", 2)));
  // Stride 0 would make a gigabyte of one number.
  EXPECT_FALSE(
      parse_one_tensor("J\xff\xff\xff\x0f\x85", std::string("K\0\x85", 3), std::string("K\0", 2)));
}

TEST(Pickle, RefusesToImportAnythingElse) {
  EXPECT_EQ(problem_of_pickle(kBegin + "cos\nsystem\n" + text("touch pwned") + "\x85R."),
            "pickle byte 2: refuses to import \"os system\"");
  for (const char* global : {"posix\nsystem\n", "builtins\neval\n", "builtins\ngetattr\n",
                             "torch\nload\n", "torch._utils\n_rebuild_tensor_v3\n",
                             "torch.os\nStorage\n", "collections\nOrderedDict \n"}) {
    EXPECT_NE(problem_of_pickle(kBegin + "c" + global + ")R.").find("refuses to import"),
              std::string::npos)
        << global;
  }
  // The same by protocol 4's STACK_GLOBAL, and the operations that need no global.
  EXPECT_NE(problem_of_pickle("\x80\x04" + text("os") + text("system") + "\x93.")
                .find("refuses to import"),
            std::string::npos);
  for (const char* operation : {"ios\nsystem\n.", "(os\nsystem\n.", "\x81.", "\x82\x01."}) {
    EXPECT_NE(problem_of_pickle(kBegin + operation).find("not allowed"), std::string::npos);
  }
}

TEST(Pickle, RefusesUntidyPrograms) {
  for (const std::string& program :
       {std::string("."), std::string(""), std::string("}"), std::string("t."), std::string("}}."),
        std::string("K\x01s."), std::string("}K\x01u."), std::string("}(K\x01u."),
        std::string("NQ."), std::string("h\x05."), std::string("]}a."), std::string("}Nb."),
        std::string("ccollections\nOrderedDict\n)."), std::string("N)R."), std::string("R."),
        std::string("X\xff\xff\xff\xff."), std::string("X\xff\xff\xff\x7f"),
        std::string("\x8a\x09"), std::string("(((((.")}) {
    EXPECT_NE(problem_of_pickle(kBegin + program), "none") << program;
  }
}

TEST(Pickle, MemoryIsBoundedWhateverTheProgram) {
  EXPECT_EQ(problem_of_pickle(kBegin + std::string(3'000'000, '}')),
            "pickle byte 1000001: too many objects");
  EXPECT_NE(problem_of_pickle(kBegin + std::string(3'000'000, '(')), "none");
  EXPECT_NE(problem_of_pickle(kBegin + std::string(3'000'000, 'N')), "none");
}

TEST(Pickle, RefusesCompressedEntries) {
  const auto parsed =
      parse_checkpoint(make_zip({{"a/data.pkl", Bytes(1 << 20)}}, /*compressed=*/true));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message,
            "entry \"a/data.pkl\" is compressed, which torch.save does not do");
}

TEST(Pickle, RefusesOtherZips) {
  EXPECT_EQ(parse_checkpoint(make_zip({{"word/document.xml", bytes_from("<w/>")}})).error().message,
            "a zip archive without data.pkl: not a torch checkpoint");
}

TEST(Pickle, TruncatedFilesAreOneLine) {
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t n = i < 30 ? i * 3 : tiny().size() * i / 60;
    const auto net = read_net(std::span(tiny()).first(n), "t");
    ASSERT_FALSE(net) << n;
    EXPECT_TRUE(net.error().message.starts_with("net: t: ")) << net.error().message;
    EXPECT_EQ(net.error().message.find('\n'), std::string::npos);
  }
}

// The pickle itself, packed again so that no checksum hides the change.
TEST(Pickle, MutatedPicklesNeverCrash) {
  const Bytes pickle = entry_of("rdt_tiny/data.pkl");
  ASSERT_GT(pickle.size(), 1000u);
  std::map<std::string, Bytes> entries;
  for (int i = 0; i < 12; ++i) {
    entries["a/data/" + std::to_string(i)] = entry_of("rdt_tiny/data/" + std::to_string(i));
  }
  std::mt19937 random(2);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    Bytes mutated = pickle;
    for (std::uint32_t k = 0; k <= random() % 4; ++k) {
      mutated[random() % mutated.size()] = static_cast<std::uint8_t>(random());
    }
    if (random() % 8 == 0) mutated.resize(random() % mutated.size());
    entries["a/data.pkl"] = std::move(mutated);
    refused += !parse_checkpoint(make_zip(entries));
  }
  EXPECT_EQ(refused, 3000);  // most entries are missing, so none can be whole
}

// The zip around it: its directory is at the end of the file.
TEST(Pickle, MutatedZipsNeverCrash) {
  const Bytes whole = make_zip(
      {{"a/data.pkl", bytes_from(one_tensor("K\x04\x85", "K\x01\x85", std::string("K\0", 2)))},
       {"a/data/0", Bytes(16)}});
  ASSERT_TRUE(parse_checkpoint(whole));
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    Bytes bytes = whole;
    for (std::uint32_t k = 0; k <= random() % 3; ++k) {
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    }
    refused += !parse_checkpoint(bytes);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tahl::nn
