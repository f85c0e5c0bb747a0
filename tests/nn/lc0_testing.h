#pragma once

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/nn/net_testing.h"

// A writer of lc0's weights files, for the tests of their reader: the message format is
// github.com/LeelaChessZero/lczero-common, proto/net.proto.
namespace tahl::nn::testing {

class Message {
 public:
  Message& number(int field, std::uint64_t value) { return tag(field, 0).varint(value); }
  Message& float32(int field, float value) {
    return tag(field, 5).raw(std::bit_cast<std::uint32_t>(value), 4);
  }
  Message& bytes(int field, const std::string& value) {
    tag(field, 2).varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.text_); }
  Message& fixed32(int field, std::uint32_t value) { return tag(field, 5).raw(value, 4); }
  Message& raw(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) text_ += static_cast<char>(value >> (8 * i) & 255);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  Message& tag(int field, int wire) { return varint(static_cast<std::uint64_t>(field * 8 + wire)); }
  Message& varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) text_ += static_cast<char>(value | 128);
    text_ += static_cast<char>(value);
    return *this;
  }
  std::string text_;
};

enum class Numbers { Linear16 = 1, Float16, Bfloat16, Float32 };

struct Lc0Writing {
  Numbers numbers = Numbers::Float32;
  bool norms = false;          // as they are while training: beside the convolutions
  bool gammas = true;          // of the norms
  int planes = 73;             // of planes73: more are padding
  int input = 1, network = 4;  // kinds
};

inline Message lc0_layer(const std::vector<float>& values, Numbers numbers) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Message params;
  for (const float x : values) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    switch (numbers) {
      case Numbers::Linear16:
        params.raw(*high == *low ? 0 : std::lround((x - *low) / (*high - *low) * 65535), 2);
        break;
      case Numbers::Float16: {  // cut off; what is below the normal numbers becomes zero
        const auto exponent = static_cast<int>(bits >> 23 & 255) - 112;
        const std::uint32_t sign = bits >> 16 & 0x8000;
        params.raw(exponent < 1
                       ? sign
                       : sign | static_cast<std::uint32_t>(exponent) << 10 | (bits >> 13 & 1023),
                   2);
        break;
      }
      case Numbers::Bfloat16:
        params.raw(bits >> 16, 2);
        break;
      case Numbers::Float32:
        params.raw(bits, 4);
    }
  }
  Message layer;
  if (numbers == Numbers::Linear16) layer.float32(1, *low).float32(2, *high);
  layer.bytes(3, params.text());
  if (numbers != Numbers::Linear16) layer.number(4, static_cast<std::uint64_t>(numbers));
  return layer;
}

// The net as lc0 would write it. Precondition: a net of the family lc0.
inline Message lc0_message(const NetFile& net, const Lc0Writing& how = {}) {
  const ArchConfig& arch = net.arch;
  const auto layer = [&](const std::string& name) {
    return lc0_layer(net.tensors.at(name).data, how.numbers);
  };
  const auto conv = [&](const std::string& name) {
    std::vector<float> weights = net.tensors.at(name + ".weight").data;
    std::vector<float> bias = net.tensors.at(name + ".bias").data;
    const std::size_t out = bias.size(), row = weights.size() / out;
    if (name == "policy_planes") {
      weights.resize(static_cast<std::size_t>(how.planes) * row, 1);
      bias.resize(static_cast<std::size_t>(how.planes), 1);
    }
    Message block;
    if (!how.norms) {
      block.message(1, lc0_layer(weights, how.numbers));
      return block.message(2, lc0_layer(bias, how.numbers));
    }
    std::vector<float> means, variances, gammas;
    for (std::size_t o = 0; o < bias.size(); ++o) {
      means.push_back(0.1f * static_cast<float>(o % 5));
      variances.push_back(0.5f + 0.25f * static_cast<float>(o % 3));
      gammas.push_back(how.gammas ? 1.5f : 1);
      const float gain = gammas[o] / std::sqrt(variances[o] + 1e-5f);
      for (std::size_t i = 0; i < row; ++i) weights[o * row + i] /= gain;
      bias[o] += means[o] * gain;
    }
    block.message(1, lc0_layer(weights, how.numbers)).message(3, lc0_layer(means, how.numbers));
    block.message(4, lc0_layer(variances, how.numbers));
    if (how.gammas) block.message(5, lc0_layer(gammas, how.numbers));
    return block.message(6, lc0_layer(bias, how.numbers));
  };

  Message weights;
  weights.message(1, conv("stem"));
  for (int i = 0; i < arch.blocks; ++i) {
    const std::string name = fmt::format("tower.{}", i);
    Message block;
    block.message(1, conv(name + ".conv1")).message(2, conv(name + ".conv2"));
    if (arch.se) {
      Message se;
      se.message(1, layer(name + ".se.fc1.weight")).message(2, layer(name + ".se.fc1.bias"));
      se.message(3, layer(name + ".se.fc2.weight")).message(4, layer(name + ".se.fc2.bias"));
      block.message(3, se);
    }
    weights.message(2, block);
  }
  int policy = 1;
  if (arch.policy_head == "moves1858") {
    weights.message(3, conv("policy_conv"));
    weights.message(4, layer("policy_fc.weight")).message(5, layer("policy_fc.bias"));
  } else if (arch.policy_head == "planes73") {
    policy = 2;
    weights.message(11, conv("policy_conv")).message(3, conv("policy_planes"));
  } else {
    policy = 3;
    weights.message(4, layer("policy_conv.weight")).message(5, layer("policy_conv.bias"));
    weights.message(17, layer("policy_queries.weight")).message(18, layer("policy_queries.bias"));
    weights.message(19, layer("policy_keys.weight")).message(20, layer("policy_keys.bias"));
    weights.message(22, layer("policy_promotions.weight"));
  }
  weights.message(6, conv("value_conv"));
  weights.message(7, layer("value_fc1.weight")).message(8, layer("value_fc1.bias"));
  weights.message(9, layer("value_fc2.weight")).message(10, layer("value_fc2.bias"));

  Message kinds;
  kinds.number(1, static_cast<std::uint64_t>(how.input)).number(2, arch.wdl ? 2 : 1);
  kinds.number(3, static_cast<std::uint64_t>(how.network));
  kinds.number(4, static_cast<std::uint64_t>(policy)).number(5, arch.wdl ? 2 : 1);
  kinds.number(7, arch.activation == "mish" ? 1 : 0);
  Message file;
  file.fixed32(1, 0x1c0).bytes(2, "GPL-3.0").message(4, Message().number(1, 1).message(2, kinds));
  return file.message(5, Message().number(1, 1000)).message(10, weights);
}

inline Bytes gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, static_cast<uLong>(text.size())) + 32);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace tahl::nn::testing
