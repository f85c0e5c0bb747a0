#include "nn/arch.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "nn/arch_run.h"

namespace tahl::nn {
namespace {

// The interpreter that only writes down what it is asked for.
class ParameterLister {
 public:
  struct Value {
    int channels = 0;
  };

  explicit ParameterLister(int input_planes) : input_planes_(input_planes) {}

  Value input() { return {input_planes_}; }
  Value conv(const std::string& name, Value x, const ConvOptions& options) {
    const std::int64_t fan_in = std::int64_t{x.channels} * options.kernel * options.kernel;
    add_spec({name + ".weight",
              {options.out, x.channels, options.kernel, options.kernel},
              ParameterKind::Weight,
              fan_in});
    if (options.bias) {
      add_spec({name + ".bias", {options.out}, ParameterKind::Bias, fan_in, options.bias_start});
    }
    return {options.out};
  }
  Value batch_norm(const std::string& name, Value x) {
    add_spec({name + ".weight", {x.channels}, ParameterKind::NormWeight, 1, 1});
    add_spec({name + ".bias", {x.channels}, ParameterKind::NormBias});
    add_spec({name + ".running_mean", {x.channels}, ParameterKind::RunningMean});
    add_spec({name + ".running_var", {x.channels}, ParameterKind::RunningVar, 1, 1});
    return x;
  }
  Value linear(const std::string& name, Value x, int out) {
    add_spec({name + ".weight", {out, x.channels}, ParameterKind::Weight, x.channels});
    add_spec({name + ".bias", {out}, ParameterKind::Bias, x.channels});
    return {out};
  }
  Value relu(Value x) { return x; }
  Value sigmoid(Value x) { return x; }
  Value tanh(Value x) { return x; }
  Value add(Value x, Value) { return x; }
  Value mean_pool(Value x) { return x; }
  Value flatten(Value x) { return {x.channels * 64}; }
  Value concat(Value x, Value y) { return {x.channels + y.channels}; }
  Value scale_bias(Value x, Value) { return x; }
  Value mix(Value, Value a, Value) { return a; }

  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  void add_spec(ParameterSpec spec) {
    if (seen_.insert(spec.name).second) specs_.push_back(std::move(spec));
  }

  int input_planes_;
  std::vector<ParameterSpec> specs_;
  std::unordered_set<std::string> seen_;
};

// The numbers of a config with the range each may have. The ranges are far beyond what two cores
// train; they keep a hostile header from asking for the machine's memory.
struct Field {
  const char* name;
  int ArchConfig::*member;
  int low, high;
};
constexpr std::array<Field, 8> kFields{{
    {"input_planes", &ArchConfig::input_planes, 1, 512},
    {"channels", &ArchConfig::channels, 1, 1024},
    {"blocks", &ArchConfig::blocks, 0, 128},
    {"recurrence", &ArchConfig::recurrence, 1, 32},
    {"se_reduction", &ArchConfig::se_reduction, 1, 1024},
    {"policy_channels", &ArchConfig::policy_channels, 0, 1024},
    {"value_channels", &ArchConfig::value_channels, 1, 1024},
    {"value_hidden", &ArchConfig::value_hidden, 1, 4096},
}};

}  // namespace

ArchConfig rdtchess_config() {
  return {.channels = 128, .blocks = 8, .policy_head = "fromto4096", .policy_channels = 32};
}

ArchConfig rdtchess2_config() {
  ArchConfig config = rdtchess_config();
  config.recurrence = 2;
  config.gate = true;
  config.se = true;
  return config;
}

int policy_outputs(const ArchConfig& config) {
  return config.policy_head == "fromto4096" ? 4096 : 12 * 64;
}

int policy_channels(const ArchConfig& config) {
  if (config.policy_channels != 0) return config.policy_channels;
  return config.policy_head == "fromto4096" ? 32 : config.channels;
}

int se_hidden(const ArchConfig& config) {
  return std::max(1, config.channels / config.se_reduction);
}

Expected<void> validate(const ArchConfig& config) {
  if (config.family != "rdt") return fail("arch: unknown family {}", tahl::quoted(config.family));
  for (const Field& field : kFields) {
    const int value = config.*field.member;
    if (value < field.low || value > field.high) {
      return fail("arch: {} is {}, not {} to {}", field.name, value, field.low, field.high);
    }
  }
  if (config.policy_head != "fromto4096" && config.policy_head != "planes12") {
    return fail("arch: unknown policy_head {}", tahl::quoted(config.policy_head));
  }
  constexpr std::size_t kMaxParameters = 500'000'000;
  if (parameter_count(config) > kMaxParameters) {
    return fail("arch: {} parameters, more than {}", parameter_count(config), kMaxParameters);
  }
  return {};
}

std::string to_json(const ArchConfig& config) {
  nlohmann::ordered_json json;
  json["family"] = config.family;
  for (const Field& field : kFields) json[field.name] = config.*field.member;
  json["gate"] = config.gate;
  json["se"] = config.se;
  json["policy_head"] = config.policy_head;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Expected<ArchConfig> arch_from_json(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail("arch: not a JSON object: {}", tahl::quoted(text));
  ArchConfig config;
  for (const auto& [key, value] : json.items()) {
    const auto field = std::find_if(kFields.begin(), kFields.end(),
                                    [&key = key](const Field& f) { return key == f.name; });
    if (field != kFields.end()) {
      if (!value.is_number_integer()) return fail("arch: {} is not a whole number", field->name);
      if (!value.is_number_unsigned()) return fail("arch: {} is negative", field->name);
      config.*(field->member) =
          static_cast<int>(std::min<std::uint64_t>(value.get<std::uint64_t>(), 1u << 30));
    } else if (key == "gate" || key == "se") {
      if (!value.is_boolean()) return fail("arch: {} is not true or false", key);
      (key == "gate" ? config.gate : config.se) = value.get<bool>();
    } else if (key == "family" || key == "policy_head") {
      if (!value.is_string()) return fail("arch: {} is not text", key);
      (key == "family" ? config.family : config.policy_head) = value.get<std::string>();
    } else {
      return fail("arch: unknown field {}", tahl::quoted(key));
    }
  }
  if (auto ok = validate(config); !ok) return tl::unexpected(ok.error());
  return config;
}

std::size_t ParameterSpec::size() const {
  std::size_t n = 1;
  for (std::int64_t side : shape) n *= static_cast<std::size_t>(side);
  return n;
}

std::vector<ParameterSpec> list_parameters(const ArchConfig& config) {
  ParameterLister lister(config.input_planes);
  run_architecture(config, lister);
  return lister.take();
}

std::size_t parameter_count(const ArchConfig& config) {
  std::size_t count = 0;
  for (const ParameterSpec& spec : list_parameters(config)) {
    if (!spec.is_statistic()) count += spec.size();
  }
  return count;
}

}  // namespace tahl::nn
