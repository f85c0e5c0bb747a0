#include "nn/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/nn/net_testing.h"

namespace tahl::nn {
namespace {

using testing::Bytes;

// A file of the given header and data, as the format's description lays it out.
Bytes file_of(const std::string& header, const Bytes& data) {
  Bytes bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<std::uint8_t>(std::uint64_t{header.size()} >> shift));
  }
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

TEST(Safetensors, GivesBackWhatWasWritten) {
  Safetensors contents;
  contents.metadata = {{"title", "two \"tensors\""}};
  contents.tensors["b"] = {{2, 3}, {1, 2, 3, 4, 5, -6.5f}};
  contents.tensors["a"] = {{}, {7}};
  const auto again = parse_safetensors(write_safetensors(contents));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->metadata, contents.metadata);
  EXPECT_EQ(again->tensors.at("b").shape, contents.tensors["b"].shape);
  EXPECT_EQ(again->tensors.at("b").data, contents.tensors["b"].data);
  EXPECT_EQ(again->tensors.at("a").data, contents.tensors["a"].data);
}

TEST(Half, EveryOneComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = float_from_half(static_cast<std::uint16_t>(bits));
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(float_from_half(half_from_float(x))));
    } else {
      ASSERT_EQ(half_from_float(x), bits) << x;
    }
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {  // every finite one and its successor
    const float low = float_from_half(static_cast<std::uint16_t>(bits));
    const float high = float_from_half(static_cast<std::uint16_t>(bits + 1));
    const float middle = (low + high) / 2;
    ASSERT_EQ(half_from_float(middle), bits % 2 == 0 ? bits : bits + 1) << middle;
    ASSERT_EQ(half_from_float(std::nextafter(middle, 0.f)), bits) << middle;
    ASSERT_EQ(half_from_float(std::nextafter(middle, 1e9f)), bits + 1) << middle;
  }
  EXPECT_EQ(half_from_float(65519.f), 0x7bff);
  EXPECT_EQ(half_from_float(-65520.f), 0xfc00);
  EXPECT_EQ(half_from_float(1e30f), 0x7c00);
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t bits = 1; bits < 0x7f7f; ++bits) {
    const float low = float_from_bfloat16(static_cast<std::uint16_t>(bits));
    const float high = float_from_bfloat16(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(bfloat16_from_float(low), bits);
    ASSERT_EQ(bfloat16_from_float(-low), bits | 0x8000);
    ASSERT_EQ(bfloat16_from_float(middle), bits % 2 == 0 ? bits : bits + 1) << middle;
    ASSERT_EQ(bfloat16_from_float(std::nextafter(middle, 0.f)), bits) << middle;
  }
}

TEST(Safetensors, StoresMatricesAsHalvesAndTheRestInFull) {
  Safetensors contents;
  contents.tensors["a"] = {{3}, {1.0001f, 2, 3}};
  contents.tensors["b"] = {{1, 3}, {1.0001f, -2, 3e-8f}};
  contents.tensors["c"] = {{}, {7}};
  for (const NumberType type : {NumberType::F16, NumberType::BF16}) {
    const auto bytes = write_safetensors(contents, type);
    const auto again = parse_safetensors(bytes);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->tensors.at("a").data, contents.tensors["a"].data);
    EXPECT_EQ(again->tensors.at("c").data, contents.tensors["c"].data);
    EXPECT_EQ(again->tensors.at("b").shape, contents.tensors["b"].shape);
    const std::vector<float>& b = again->tensors.at("b").data;
    EXPECT_EQ(b[0], 1);
    EXPECT_EQ(b[1], -2);
    EXPECT_NEAR(b[2], 3e-8, type == NumberType::F16 ? 3e-8 : 1e-10);
    EXPECT_EQ(safetensors_types(bytes), type == NumberType::F16 ? "f16 f32" : "bf16 f32");
  }
  EXPECT_EQ(safetensors_types(write_safetensors(contents)), "f32");
}

TEST(Safetensors, ReadsHalvesOfBothKinds) {
  // IEEE 754 half: 1, -2, 65504 (largest), 2^-24 (smallest); bfloat16: 1, -2.
  const Bytes data{0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b, 0x01, 0x00, 0x80, 0x3f, 0x00, 0xc0};
  const auto contents = parse_safetensors(
      file_of("{\"h\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,8]},"
              "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[8,12]}}",
              data));
  ASSERT_TRUE(contents) << contents.error().message;
  EXPECT_EQ(contents->tensors.at("h").data, (std::vector<float>{1, -2, 65504, 0x1p-24f}));
  EXPECT_EQ(contents->tensors.at("b").data, (std::vector<float>{1, -2}));
}

TEST(Safetensors, RefusesHostileHeaders) {
  const auto tensor = [](const std::string& type, const std::string& shape, const std::string& at) {
    return "{\"x\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + at +
           "}}";
  };
  for (const std::string& header :
       {std::string("{"), std::string("[]"), std::string("{\"x\":1}"),
        tensor("F32", "[2]", "[0,4]"), tensor("F32", "[1]", "[0,8]"), tensor("I64", "[1]", "[0,8]"),
        tensor("F32", "[3]", "[0,12]"), tensor("F32", "[-2]", "[0,8]"),
        tensor("F32", "[1]", "[4,8]"), tensor("F32", "[1]", "[0,4]"), tensor("F32", "[1]", "[8,4]"),
        tensor("F32", "[4294967296,4294967296]", "[0,8]"),
        tensor("F32", "[18446744073709551615]", "[0,8]"),
        tensor("F32", "[0,18446744073709551615]", "[0,0]"), tensor("F32", "2", "[0,8]"),
        std::string("{\"__metadata__\":{\"a\":1}}"), std::string("{\"__metadata__\":[]}")}) {
    const auto contents = parse_safetensors(file_of(header, Bytes(8)));
    ASSERT_FALSE(contents) << header;
    EXPECT_EQ(contents.error().message.find('\n'), std::string::npos);
  }
  Bytes huge = file_of("{}", {});
  huge[6] = 1;  // a header of 2^48 bytes
  EXPECT_FALSE(parse_safetensors(huge));
}

TEST(Safetensors, RefusesTensorsThatOverlap) {
  const auto contents =
      parse_safetensors(file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                                Bytes(4)));
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().message, "tensor \"b\" overlaps another");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  Safetensors contents;
  contents.tensors["a"] = {{4}, {1, 2, 3, 4}};
  const Bytes whole = write_safetensors(contents);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(parse_safetensors(std::span(whole).first(n))) << n;
  }
}

TEST(Safetensors, MutatedFilesAreRefusedOrHoldNoMoreThanTheFile) {
  Safetensors contents;
  contents.metadata["arch"] = "{}";
  contents.tensors["a.weight"] = {{2, 2}, {1, 2, 3, 4}};
  contents.tensors["b"] = {{3}, {5, 6, 7}};
  const Bytes whole = write_safetensors(contents);
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    Bytes bytes = whole;
    for (std::uint32_t k = 0; k <= random() % 3; ++k) {
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    }
    const auto parsed = parse_safetensors(bytes);
    if (!parsed) continue;
    std::size_t floats = 0;
    for (const auto& [name, tensor] : parsed->tensors) floats += tensor.data.size();
    EXPECT_LE(floats * 2, bytes.size());
  }
}

}  // namespace
}  // namespace tahl::nn
