#include "nn/arch.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "nn/arch_run.h"
#include "nn/policy_map.h"

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
  Value mish(Value x) { return x; }
  Value selu(Value x) { return x; }
  Value softmax(Value x) { return x; }
  Value add(Value x, Value) { return x; }
  Value mean_pool(Value x) { return x; }
  Value flatten(Value x) { return {x.channels * 64}; }
  Value concat(Value x, Value y) { return {x.channels + y.channels}; }
  Value scale_bias(Value x, Value) { return x; }
  Value mix(Value, Value a, Value) { return a; }
  Value attention_policy(const std::string& name, Value queries, Value) {
    add_spec({name + ".weight", {4, queries.channels}, ParameterKind::Weight, queries.channels});
    return {nn::policy_outputs(PolicyHead::Attention4288)};
  }

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
constexpr std::array<Field, 10> kFields{{
    {"input_planes", &ArchConfig::input_planes, 1, 512},
    {"channels", &ArchConfig::channels, 1, 1024},
    {"blocks", &ArchConfig::blocks, 0, 128},
    {"recurrence", &ArchConfig::recurrence, 1, 32},
    {"se_reduction", &ArchConfig::se_reduction, 1, 1024},
    {"se_width", &ArchConfig::se_width, 0, 1024},
    {"policy_channels", &ArchConfig::policy_channels, 0, 2048},
    {"policy_width", &ArchConfig::policy_width, 1, 2048},
    {"value_channels", &ArchConfig::value_channels, 1, 1024},
    {"value_hidden", &ArchConfig::value_hidden, 1, 4096},
}};

struct Flag {
  const char* name;
  bool ArchConfig::*member;
};
constexpr std::array<Flag, 3> kFlags{
    {{"gate", &ArchConfig::gate}, {"se", &ArchConfig::se}, {"wdl", &ArchConfig::wdl}}};

struct Word {
  const char* name;
  std::string ArchConfig::*member;
};
constexpr std::array<Word, 3> kWords{{{"family", &ArchConfig::family},
                                      {"policy_head", &ArchConfig::policy_head},
                                      {"activation", &ArchConfig::activation}}};

template <class Fields>
auto find_field(const Fields& fields, const std::string& name) -> decltype(&fields[0]) {
  for (const auto& field : fields)
    if (name == field.name) return &field;
  return nullptr;
}

// What only some families have.
Expected<void> validate_family(const ArchConfig& config, PolicyHead head) {
  const bool lc0_head = head == PolicyHead::Moves1858 || head == PolicyHead::Planes73 ||
                        head == PolicyHead::Attention4288;
  const bool is_lc0 = config.family == "lc0";
  if (!is_lc0 && config.family != "rdt")
    return fail("arch: unknown family {}", tahl::quoted(config.family));
  if (lc0_head != is_lc0)
    return fail("arch: {} has no policy_head {}", config.family, to_string(head));
  if (!is_lc0 && (config.wdl || config.activation != "relu"))
    return fail("arch: rdt has neither wdl nor another activation than relu");
  if (is_lc0 && (config.gate || config.recurrence != 1))
    return fail("arch: lc0 has neither gate nor recurrence");
  if (config.activation != "relu" && config.activation != "mish")
    return fail("arch: unknown activation {}", tahl::quoted(config.activation));
  return {};
}

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
  const auto head = parse_policy_head(config.policy_head);
  assert(head);
  return policy_outputs(*head);
}

int value_outputs(const ArchConfig& config) { return config.wdl ? 3 : 1; }

int policy_channels(const ArchConfig& config) {
  if (config.policy_channels != 0) return config.policy_channels;
  const bool before_linear =
      config.policy_head == "fromto4096" || config.policy_head == "moves1858";
  return before_linear ? 32 : config.channels;
}

int se_hidden(const ArchConfig& config) {
  if (config.se_width != 0) return config.se_width;
  return std::max(1, config.channels / config.se_reduction);
}

Expected<void> validate(const ArchConfig& config) {
  for (const Field& field : kFields) {
    const int value = config.*field.member;
    if (value < field.low || value > field.high) {
      return fail("arch: {} is {}, not {} to {}", field.name, value, field.low, field.high);
    }
  }
  const auto head = parse_policy_head(config.policy_head);
  if (!head) return fail("arch: unknown policy_head {}", tahl::quoted(config.policy_head));
  if (auto ok = validate_family(config, *head); !ok) return ok;
  constexpr std::size_t kMaxParameters = 500'000'000;
  if (parameter_count(config) > kMaxParameters) {
    return fail("arch: {} parameters, more than {}", parameter_count(config), kMaxParameters);
  }
  return {};
}

std::string to_json(const ArchConfig& config) {
  nlohmann::ordered_json json;
  for (const Word& word : kWords) json[word.name] = config.*word.member;
  for (const Field& field : kFields) json[field.name] = config.*field.member;
  for (const Flag& flag : kFlags) json[flag.name] = config.*flag.member;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Expected<ArchConfig> arch_from_json(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail("arch: not a JSON object: {}", tahl::quoted(text));
  ArchConfig config;
  for (const auto& [key, value] : json.items()) {
    if (const Field* field = find_field(kFields, key)) {
      if (!value.is_number_integer()) return fail("arch: {} is not a whole number", field->name);
      if (!value.is_number_unsigned()) return fail("arch: {} is negative", field->name);
      config.*(field->member) =
          static_cast<int>(std::min<std::uint64_t>(value.get<std::uint64_t>(), 1u << 30));
    } else if (const Flag* flag = find_field(kFlags, key)) {
      if (!value.is_boolean()) return fail("arch: {} is not true or false", key);
      config.*(flag->member) = value.get<bool>();
    } else if (const Word* word = find_field(kWords, key)) {
      if (!value.is_string()) return fail("arch: {} is not text", key);
      config.*(word->member) = value.get<std::string>();
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
