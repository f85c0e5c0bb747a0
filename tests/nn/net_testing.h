#pragma once

#include <zip.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "chess/byte_source.h"
#include "nn/arch.h"
#include "nn/net_file.h"

// What the tests of networks and their files share.
namespace tahl::nn::testing {

using Bytes = std::vector<std::uint8_t>;

inline Bytes bytes_from(const std::string& text) { return {text.begin(), text.end()}; }

// A whole file, decompressed if it is .zst. Empty if it cannot be read.
inline Bytes read_bytes(const std::filesystem::path& path) {
  Bytes bytes;
  auto source = open_bytes(path);
  if (!source) return bytes;
  std::vector<char> part(1 << 16);
  while (true) {
    const auto n = (*source)->read(part.data(), part.size());
    if (!n || *n == 0) return bytes;
    bytes.insert(bytes.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(*n));
  }
}

// Weights of about the size that training leaves, the same for the same seed.
inline NetFile random_net(const ArchConfig& arch, std::uint32_t seed) {
  NetFile net{arch, arch.family == "lc0" ? "lc0-112" : "rdt19", {{"title", "random"}}, {}};
  std::mt19937 random(seed);
  for (const ParameterSpec& spec : list_parameters(arch)) {
    const float width = 1.5f / std::sqrt(static_cast<float>(spec.fan_in));
    std::uniform_real_distribution<float> near_zero(-width, width), positive(0.5f, 1.5f);
    TensorData tensor{spec.shape, std::vector<float>(spec.size())};
    const bool is_scale =
        spec.kind == ParameterKind::RunningVar || spec.kind == ParameterKind::NormWeight;
    for (float& x : tensor.data) x = is_scale ? positive(random) : near_zero(random);
    net.tensors[spec.name] = std::move(tensor);
  }
  return net;
}

// Planes as encodings make them: mostly zeros and ones.
inline std::vector<float> random_planes(int positions, int planes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> result(static_cast<std::size_t>(positions * planes * 64));
  for (float& x : result) x = random() % 5 == 0 ? 1.f : 0.f;
  return result;
}

// Every option of the architecture, and widths that no vector divides.
inline std::vector<ArchConfig> lc0_configs() {
  return {{.family = "lc0",
           .input_planes = 112,
           .channels = 24,
           .blocks = 2,
           .se = true,
           .se_width = 5,
           .policy_head = "moves1858",
           .policy_channels = 3,
           .value_channels = 4,
           .value_hidden = 8},
          {.family = "lc0",
           .input_planes = 112,
           .channels = 33,
           .blocks = 1,
           .policy_head = "planes73",
           .wdl = true,
           .activation = "mish"},
          {.family = "lc0",
           .input_planes = 112,
           .channels = 16,
           .blocks = 1,
           .se = true,
           .policy_head = "attention4288",
           .policy_channels = 40,
           .policy_width = 20,
           .wdl = true,
           .activation = "mish"}};
}
inline std::vector<ArchConfig> varied_configs() {
  std::vector<ArchConfig> configs;
  configs.push_back({.channels = 32, .blocks = 2, .se = true});
  configs.push_back(
      {.channels = 20, .blocks = 2, .policy_head = "fromto4096", .policy_channels = 2});
  configs.push_back({.channels = 33, .blocks = 1, .recurrence = 3, .gate = true, .se = true});
  configs.push_back({.channels = 16, .blocks = 2, .recurrence = 2});
  configs.push_back({.input_planes = 28, .channels = 48, .blocks = 1, .gate = true});
  configs.push_back({.channels = 1, .blocks = 0, .value_channels = 1, .value_hidden = 1});
  for (ArchConfig& config : lc0_configs()) configs.push_back(std::move(config));
  return configs;
}

// A zip archive in memory, its entries stored or compressed.
inline Bytes make_zip(const std::map<std::string, Bytes>& entries, bool compressed = false) {
  zip_error_t error;
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  zip_t* archive = zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error);
  for (const auto& [name, bytes] : entries) {
    zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    const auto index = zip_file_add(archive, name.c_str(), source, ZIP_FL_OVERWRITE);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                             compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  zip_close(archive);
  zip_stat_t stat;
  zip_source_stat(target, &stat);
  Bytes result(static_cast<std::size_t>(stat.size));
  zip_source_open(target);
  zip_source_read(target, result.data(), result.size());
  zip_source_close(target);
  zip_source_free(target);
  return result;
}

}  // namespace tahl::nn::testing
