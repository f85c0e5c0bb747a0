#include "nn/net_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <system_error>

#include "nn/lc0_file.h"
#include "nn/pickle.h"
#include "nn/safetensors.h"

namespace tahl::nn {
namespace {

constexpr std::uintmax_t kMaxFile = std::uintmax_t{4} << 30;

tl::unexpected<Error> prefixed(const std::string& name, const Error& error) {
  return fail("net: {}: {}", name, error.message);
}

Expected<NetFile> net_from_safetensors(std::span<const std::uint8_t> bytes) {
  auto contents = parse_safetensors(bytes);
  if (!contents) return tl::unexpected(contents.error());
  NetFile net;
  net.metadata = std::move(contents->metadata);
  net.tensors = std::move(contents->tensors);
  const auto arch = net.metadata.find("arch");
  if (arch == net.metadata.end()) return fail("its metadata names no arch: not a net of ours");
  auto config = arch_from_json(arch->second);
  if (!config) return tl::unexpected(config.error());
  net.arch = *config;
  net.metadata.erase(arch);
  if (const auto encoding = net.metadata.find("encoding"); encoding != net.metadata.end()) {
    net.encoding = encoding->second;
    net.metadata.erase(encoding);
  }
  net.metadata.erase("format");
  return net;
}

// What an RDTChess checkpoint says of itself. The plain net's keys are golden; those of the gated
// net are not public, so the tensors' names decide and the config may only confirm.
Expected<NetFile> net_from_checkpoint(std::span<const std::uint8_t> bytes) {
  auto checkpoint = parse_checkpoint(bytes);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  NetFile net;
  net.tensors = std::move(checkpoint->tensors);
  std::erase_if(net.tensors,
                [](const auto& entry) { return entry.first.ends_with("num_batches_tracked"); });
  net.arch = rdtchess_config();
  net.arch.policy_channels = 0;
  net.arch.gate = net.tensors.contains("gate.weight");
  net.arch.se = net.tensors.contains("tower.0.se.fc1.weight");
  for (const auto& [key, value] : checkpoint->config) {
    if (value < 0 || value > 1'000'000) return fail("network_config {} is {}", key, value);
    const int number = static_cast<int>(value);
    if (key == "input_planes") {
      net.arch.input_planes = number;
    } else if (key == "channels") {
      net.arch.channels = number;
    } else if (key == "blocks") {
      net.arch.blocks = number;
    } else if (key == "action_size") {
      if (number != 4096) return fail("network_config action_size is {}, not 4096", number);
    } else if (key == "recurrence" || key == "recurrent_steps" || key == "recurrent_depth") {
      net.arch.recurrence = number;
    } else if (key == "gate" || key == "gated") {
      net.arch.gate = number != 0;
    } else if (key == "se" || key == "squeeze_excite") {
      net.arch.se = number != 0;
    } else if (key == "se_reduction") {
      net.arch.se_reduction = number;
    } else {
      return fail("network_config has an unknown key {}", tahl::quoted(key));
    }
  }
  for (const char* key : {"input_planes", "channels", "blocks"}) {
    if (!checkpoint->config.contains(key)) return fail("network_config has no {}", key);
  }
  // Widths that RDTChess fixes in its code: read them off the weights.
  const auto rows = [&](const char* name, int otherwise) {
    const auto found = net.tensors.find(name);
    if (found == net.tensors.end() || found->second.shape.empty()) return otherwise;
    return static_cast<int>(std::min<std::int64_t>(found->second.shape[0], 1'000'000));
  };
  net.arch.policy_channels = rows("policy_conv.weight", 32);
  net.arch.value_channels = rows("value_conv.weight", 16);
  net.arch.value_hidden = rows("value_fc1.weight", 128);
  if (auto ok = validate(net.arch); !ok) return tl::unexpected(ok.error());
  return net;
}

Expected<NetFile> parse_net(std::span<const std::uint8_t> bytes) {
  const bool zip = bytes.size() >= 4 && std::memcmp(bytes.data(), "PK\3\4", 4) == 0;
  const bool lc0 = looks_like_lc0(bytes);
  if (!zip && !lc0 && !looks_like_safetensors(bytes)) {
    return fail("neither safetensors nor an RDTChess checkpoint nor an lc0 net");
  }
  auto net = zip   ? net_from_checkpoint(bytes)
             : lc0 ? parse_lc0(bytes)
                   : net_from_safetensors(bytes);
  if (!net) return net;
  if (auto ok = check_tensors(*net); !ok) return tl::unexpected(ok.error());
  return net;
}

// Errors name no file.
Expected<void> write_whole(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  const auto failed = [](const char* what) -> Expected<void> {
    return fail("cannot {}: {}", what, std::strerror(errno));
  };
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return failed("create");
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      auto result = failed("write");
      ::close(file);
      return result;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (::fsync(file) != 0) {
    auto result = failed("write");
    ::close(file);
    return result;
  }
  if (::close(file) != 0) return failed("write");
  return {};
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

NetFile fresh_net(const ArchConfig& arch, std::uint32_t seed) {
  NetFile net;
  net.arch = arch;
  std::mt19937 random(seed);
  for (const ParameterSpec& spec : list_parameters(arch)) {
    const float bound = 1 / std::sqrt(static_cast<float>(spec.fan_in));
    std::uniform_real_distribution<float> draw(-bound, bound);
    const bool drawn =
        spec.kind == ParameterKind::Weight || (spec.kind == ParameterKind::Bias && spec.start == 0);
    TensorData& tensor = net.tensors[spec.name];
    tensor.shape = spec.shape;
    for (std::size_t i = 0; i < spec.size(); ++i)
      tensor.data.push_back(drawn ? draw(random) : spec.start);
  }
  return net;
}

Expected<void> check_tensors(const NetFile& net) {
  const auto specs = list_parameters(net.arch);
  for (const ParameterSpec& spec : specs) {
    const auto found = net.tensors.find(spec.name);
    if (found == net.tensors.end()) return fail("tensor {} is missing", spec.name);
    const TensorData& tensor = found->second;
    if (tensor.shape != spec.shape || tensor.data.size() != spec.size()) {
      return fail("tensor {} is {}, not {}", spec.name, shape_text(tensor.shape),
                  shape_text(spec.shape));
    }
    for (const float x : tensor.data) {
      if (!std::isfinite(x) || (spec.kind == ParameterKind::RunningVar && x < 0)) {
        return fail("tensor {} contains {}", spec.name, x);
      }
    }
  }
  if (net.tensors.size() != specs.size()) {
    TensorMap rest = net.tensors;
    for (const ParameterSpec& spec : specs) rest.erase(spec.name);
    return fail("tensor {} has no place in the architecture", tahl::quoted(rest.begin()->first));
  }
  return {};
}

Expected<NetFile> read_net(std::span<const std::uint8_t> bytes, const std::string& name) {
  auto net = parse_net(bytes);
  if (!net) return prefixed(name, net.error());
  return net;
}

Expected<NetFile> read_net(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return fail("net: {}: is a folder", name);
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  if (code) return fail("net: {}: {}", name, code.message());
  if (size > kMaxFile) return fail("net: {}: {} bytes, more than {}", name, size, kMaxFile);
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail("net: {}: cannot open: {}", name, std::strerror(errno));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) return fail("net: {}: cannot read all of it", name);
  return read_net(bytes, name);
}

std::vector<std::uint8_t> to_bytes(const NetFile& net, NumberType type) {
  Safetensors contents{net.metadata, net.tensors};
  contents.metadata["arch"] = to_json(net.arch);
  contents.metadata["encoding"] = net.encoding;
  contents.metadata["format"] = "pt";  // what the Python library wants to see
  return write_safetensors(contents, type);
}

Expected<std::vector<std::uint8_t>> to_checkpoint(const NetFile& net) {
  const auto refuse = [](const std::string& why) {
    return fail("RDTChess's plain network cannot be this one: {}", why);
  };
  const ArchConfig& arch = net.arch;
  const ArchConfig plain = rdtchess_config();
  if (arch.family != plain.family) return refuse("family " + arch.family);
  if (net.encoding != "rdt19" || arch.input_planes != plain.input_planes)
    return refuse(fmt::format("encoding {} of {} planes", net.encoding, arch.input_planes));
  if (arch.policy_head != plain.policy_head) return refuse("policy head " + arch.policy_head);
  if (arch.recurrence != 1) return refuse("recurrence");
  if (arch.gate) return refuse("a gate");
  if (arch.se) return refuse("squeeze-and-excitation");
  if (policy_channels(arch) != policy_channels(plain))
    return refuse(fmt::format("{} policy channels", policy_channels(arch)));
  if (arch.value_channels != plain.value_channels || arch.value_hidden != plain.value_hidden)
    return refuse(
        fmt::format("{} value channels, {} hidden", arch.value_channels, arch.value_hidden));
  // All else must be the same, but for what a checkpoint tells, or what has no say here.
  ArchConfig same = plain;
  same.channels = arch.channels;
  same.blocks = arch.blocks;
  same.se_reduction = arch.se_reduction;
  same.policy_channels = arch.policy_channels;
  if (arch != same) return refuse("an option that it doesn't have: " + to_json(arch));
  if (auto ok = check_tensors(net); !ok) return tl::unexpected(ok.error());
  Checkpoint checkpoint;
  checkpoint.config = {{"input_planes", arch.input_planes},
                       {"channels", arch.channels},
                       {"blocks", arch.blocks},
                       {"action_size", policy_outputs(arch)}};
  checkpoint.tensors = net.tensors;
  constexpr std::string_view kMean = "running_mean";
  for (const auto& [name, tensor] : net.tensors) {  // a counter that only training reads
    if (name.ends_with(kMean))
      checkpoint.tensors[name.substr(0, name.size() - kMean.size()) + "num_batches_tracked"] = {
          {}, {0}};
  }
  return write_checkpoint(checkpoint);
}

Expected<void> write_net(const NetFile& net, const std::filesystem::path& path) {
  return write_net(to_bytes(net), path);
}

Expected<void> write_net(std::span<const std::uint8_t> bytes, const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += fmt::format(".{}.tmp", ::getpid());
  if (auto ok = write_whole(temporary, bytes); !ok) {
    ::unlink(temporary.c_str());
    return prefixed(path.string(), ok.error());
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return fail("net: {}: cannot rename {}: {}", path.string(), temporary.string(),
                std::strerror(error));
  }
  return {};
}

}  // namespace tahl::nn
