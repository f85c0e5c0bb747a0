#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/console.h"
#include "app/interrupt.h"
#include "app/net_compare.h"
#include "chess/fen.h"
#include "nn/cpu_network.h"
#include "nn/encoding.h"
#include "nn/evaluator.h"
#include "nn/net_file.h"
#include "nn/network.h"

namespace tahl::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The bytes of a net: of a file, or of one in this program.
struct NamedNet {
  std::string name;
  bool is_embedded = false, is_default = false;
  std::vector<std::uint8_t> bytes;
};

Expected<NamedNet> find_net(const std::string& name) {
  const auto embedded = nn::embedded_nets();
  if (name.empty() && embedded.empty())
    return fail("net: this program was built without one; name a net file");
  for (const nn::EmbeddedNet& net : embedded) {
    if (name.empty() || name == net.name)
      return NamedNet{std::string(net.name),
                      true,
                      &net == embedded.data(),
                      {net.bytes.begin(), net.bytes.end()}};
  }
  std::error_code error;
  if (fs::is_directory(name, error)) return fail("net: {}: is a folder", name);
  const std::uintmax_t size = fs::file_size(name, error);
  std::ifstream file(name, std::ios::binary);
  if (error || !file) {
    std::string known;
    for (const nn::EmbeddedNet& net : embedded)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", net.name);
    return fail("net: {}: no file that can be read, nor a net of this program ({})", name,
                known.empty() ? "there are none" : known);
  }
  NamedNet net{name, false, false, std::vector<std::uint8_t>(static_cast<std::size_t>(size))};
  if (!file.read(reinterpret_cast<char*>(net.bytes.data()), static_cast<std::streamsize>(size)))
    return fail("net: {}: cannot read all of it", name);
  return net;
}

// ---- show ----

std::string format_of(std::span<const std::uint8_t> bytes) {
  if (nn::looks_like_safetensors(bytes)) return "safetensors, " + nn::safetensors_types(bytes);
  if (bytes.size() > 1 && bytes[0] == 'P' && bytes[1] == 'K') return "RDTChess checkpoint";
  if (bytes.size() > 1 && bytes[0] == 0x1f && bytes[1] == 0x8b) return "lc0 weights";
  return "other";
}

std::string layers(const nn::ArchConfig& arch) {
  std::string text =
      fmt::format("{}: {} blocks of {} channels", arch.family, arch.blocks, arch.channels);
  if (arch.se) text += fmt::format(", squeeze-and-excitation by {}", nn::se_hidden(arch));
  if (arch.recurrence > 1) text += fmt::format(", applied {} times", arch.recurrence);
  if (arch.gate) text += ", gated";
  return text;
}

int show(const std::string& name, bool as_json) {
  const auto found = find_net(name);
  if (!found) return print_error(found.error());
  const auto net = nn::read_net(found->bytes, found->name);
  if (!net) return print_error(net.error());
  const auto network = nn::make_cpu_network(*net);
  if (!network) return print_error(network.error());
  const nn::NetInfo& info = (*network)->info();
  const std::size_t parameters = nn::parameter_count(net->arch);
  const char* value = info.value_outputs == 3 ? "win, draw, loss" : "expected result";
  if (as_json) {
    const Json arch = Json::parse(nn::to_json(net->arch), nullptr, false);
    fmt::print("{}\n", dump({{"name", found->name},
                             {"embedded", found->is_embedded},
                             {"default", found->is_default},
                             {"format", format_of(found->bytes)},
                             {"bytes", found->bytes.size()},
                             {"arch", arch},
                             {"parameters", parameters},
                             {"encoding", info.encoding},
                             {"input_planes", info.input_planes},
                             {"policy_head", net->arch.policy_head},
                             {"policy_outputs", info.policy_outputs},
                             {"value", value},
                             {"value_outputs", info.value_outputs},
                             {"arithmetic", info.arithmetic},
                             {"metadata", net->metadata}}));
    return 0;
  }
  fmt::print("net         {}{}\n", found->name,
             found->is_default    ? " (in this program, the default)"
             : found->is_embedded ? " (in this program)"
                                  : "");
  fmt::print("format      {}, {} bytes\n", format_of(found->bytes), found->bytes.size());
  fmt::print("network     {}\n", layers(net->arch));
  fmt::print("parameters  {}\n", parameters);
  fmt::print("sees        {}, {} planes\n", info.encoding, info.input_planes);
  fmt::print("policy      {}, {} outputs\n", net->arch.policy_head, info.policy_outputs);
  fmt::print("value       {}\n", value);
  fmt::print("computed    {}\n", info.arithmetic);
  for (const auto& [key, text] : net->metadata) {
    const std::string shown = tahl::quoted(text, 400), label = tahl::quoted(key, 40);
    fmt::print("{:<12}{}\n", label.substr(1, label.size() - 2) + ' ',
               shown.substr(1, shown.size() - 2));
  }
  return 0;
}

// ---- convert ----

struct ConvertOptions {
  std::string in;
  fs::path out;
  std::string dtype;  // empty: f32
};

Expected<std::vector<std::uint8_t>> converted(const nn::NetFile& net, const ConvertOptions& o) {
  if (o.out.extension() == ".pt") {
    auto bytes = nn::to_checkpoint(net);
    if (!bytes) return fail("net: {}: {}", o.in, bytes.error().message);
    return bytes;
  }
  const nn::NumberType type = o.dtype == "f16"    ? nn::NumberType::F16
                              : o.dtype == "bf16" ? nn::NumberType::BF16
                                                  : nn::NumberType::F32;
  std::vector<std::uint8_t> bytes = nn::to_bytes(net, type);
  // What a half cannot hold has become infinite, which reading refuses.
  if (auto again = nn::read_net(bytes, o.in + " as " + o.dtype); !again)
    return tl::unexpected(again.error());
  return bytes;
}

int convert(const ConvertOptions& options) {
  const auto found = find_net(options.in);
  if (!found) return print_error(found.error());
  std::error_code error;
  if (!found->is_embedded && fs::equivalent(options.in, options.out, error))
    return print_error(fmt::format("net: {}: would be written over; name another file to write",
                                   options.out.string()));
  if (fs::is_directory(options.out, error))
    return print_error(fmt::format("net: {}: is a folder", options.out.string()));
  const auto net = nn::read_net(found->bytes, found->name);
  if (!net) return print_error(net.error());
  const auto bytes = converted(*net, options);
  if (!bytes) return print_error(bytes.error());
  if (const auto done = nn::write_net(*bytes, options.out); !done) return print_error(done.error());
  fmt::print("{}: {}, {} bytes\n", options.out.string(), format_of(*bytes), bytes->size());
  if (options.out.extension() == ".pt" && !net->metadata.empty())
    fmt::print("its {} lines of metadata stay behind: a checkpoint has no place for them\n",
               net->metadata.size());
  return 0;
}

// ---- compare ----

struct CompareOptions {
  std::string a, b, positions;
  std::string precision_a = "auto", precision_b = "auto", split = "val";
  int threads = 1;
  SampleOptions sample;
  bool json = false;
};

// One line on stderr that is rewritten on a terminal, and now and then a new one elsewhere.
class Line {
 public:
  void show(const std::string& text) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10)))
      return;
    last_ = now;
    fmt::print(stderr, "{}{}{}", terminal_ ? "\r" : "", text, terminal_ ? "\033[K" : "\n");
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
};

Json to_json(const Calibration& c) {
  return {{"played", c.share()}, {"mean_p", c.mean_p()}, {"ece", c.expected_error()}};
}

Expected<void> compare(const CompareOptions& options) {
  const Interrupt interrupt;
  const auto load = [&](const std::string& net, const std::string& precision) {
    return nn::load_evaluator(
        net, {.precision = *nn::parse_precision(precision), .threads = options.threads});
  };
  const auto a = load(options.a, options.precision_a), b = load(options.b, options.precision_b);
  if (!a) return tl::unexpected(a.error());
  if (!b) return tl::unexpected(b.error());
  SampleOptions sample = options.sample;
  sample.split = *learn::parse_split(options.split);
  Line reading;
  const auto positions = sample_positions(
      options.positions, sample, interrupt.token(),
      [&](std::uint64_t n) { reading.show(fmt::format("reading: {} positions", n)); });
  reading.clear();
  if (!positions) return tl::unexpected(positions.error());

  Line line;
  const Agreement g = compare_nets(**a, **b, *positions, interrupt.token(), [&](std::size_t done) {
    const double left =
        line.elapsed() / static_cast<double>(done) * static_cast<double>(positions->size() - done);
    line.show(fmt::format("{}/{} positions, {:.0f} s left", done, positions->size(), left));
  });
  line.clear();
  if (interrupt.token().stop_requested())
    return fail("net compare: interrupted after {} of {} positions", g.positions(),
                positions->size());

  const std::string widest =
      to_fen((*positions)[static_cast<std::size_t>(g.largest_value_position())].game.position());
  const bool has_moves = g.calibration_a().count() > 0;
  const auto named = [](const std::string& name, const std::string& precision) {
    return precision == "auto" ? name : fmt::format("{} ({})", name, precision);
  };
  const std::string name_a = named((*a)->name(), options.precision_a),
                    name_b = named((*b)->name(), options.precision_b);
  if (options.json) {
    Json json = {{"a", name_a},
                 {"b", name_b},
                 {"positions", g.positions()},
                 {"seed", sample.seed},
                 {"top1_agreement", g.top1()},
                 {"kl", g.kl()},
                 {"largest_kl", g.largest_kl()},
                 {"value_rmse", g.value_rmse()},
                 {"largest_value_difference", g.largest_value_difference()},
                 {"largest_value_difference_fen", widest},
                 {"moves_left_out", g.moves_left_out()},
                 {"moves_known", g.calibration_a().count()},
                 {"calibration_a", has_moves ? to_json(g.calibration_a()) : Json(nullptr)},
                 {"calibration_b", has_moves ? to_json(g.calibration_b()) : Json(nullptr)},
                 {"seconds", line.elapsed()}};
    fmt::print("{}\n", dump(json));
    return {};
  }
  fmt::print("A  {}\nB  {}\n{} positions\n", name_a, name_b, g.positions());
  fmt::print("same first choice      {:.2f} %\n", 100 * g.top1());
  fmt::print("KL(A||B)               {:.3g} nats on average, {:.3g} at most\n", g.kl(),
             g.largest_kl());
  fmt::print("difference of values   {:.3g} root mean square, {:.3g} at most: {}\n", g.value_rmse(),
             g.largest_value_difference(), widest);
  if (g.moves_left_out() > 0)
    fmt::print("moves left out of KL   {}: one of the nets has no output for them\n",
               g.moves_left_out());
  if (has_moves) {
    fmt::print("first choice           played   expected   calibration error\n");
    for (const auto& [name, c] : {std::pair("A", &g.calibration_a()), {"B", &g.calibration_b()}})
      fmt::print("  {}                  {:6.2f} %   {:6.2f} %   {:.2f} %\n", name, 100 * c->share(),
                 100 * c->mean_p(), 100 * c->expected_error());
  }
  return {};
}

// ---- quantize ----

struct QuantizeOptions {
  std::string in;
  fs::path out;
  std::string positions, split = "val";
  SampleOptions sample{.count = 10'000};
};

// How often a precision's first choice is that of fp32.
Expected<Agreement> agreement(const nn::NetFile& net, nn::Precision precision,
                              const std::vector<SamplePosition>& positions, std::stop_token stop,
                              Line& line, std::string_view name) {
  const auto exact = nn::make_evaluator(net, {.precision = nn::Precision::Fp32});
  const auto other = nn::make_evaluator(net, {.precision = precision});
  if (!exact) return tl::unexpected(exact.error());
  if (!other) return tl::unexpected(other.error());
  const double begin = line.elapsed();
  const Agreement result = compare_nets(**exact, **other, positions, stop, [&](std::size_t done) {
    const double left = (line.elapsed() - begin) / static_cast<double>(done) *
                        static_cast<double>(positions.size() - done);
    line.show(
        fmt::format("{}: {}/{} positions, {:.0f} s left", name, done, positions.size(), left));
  });
  line.clear();
  if (stop.stop_requested()) return fail("net quantize: interrupted; nothing was written");
  return result;
}

Expected<void> quantize(const QuantizeOptions& options) {
  const Interrupt interrupt;
  const auto found = find_net(options.in);
  if (!found) return tl::unexpected(found.error());
  auto net = nn::read_net(found->bytes, found->name);
  if (!net) return tl::unexpected(net.error());
  const nn::Encoding* encoding = nn::find_encoding(net->encoding);
  if (encoding == nullptr)
    return fail("net: {}: the net wants the encoding {}, which this program has not", found->name,
                tahl::quoted(net->encoding));
  SampleOptions sample = options.sample;
  sample.split = *learn::parse_split(options.split);
  Line line;
  const auto positions = sample_positions(
      options.positions, sample, interrupt.token(),
      [&](std::uint64_t n) { line.show(fmt::format("reading: {} positions", n)); });
  line.clear();
  if (!positions) return tl::unexpected(positions.error());

  // Ranges from some positions, agreement on the others.
  const std::size_t calibrating = std::min<std::size_t>(1000, (positions->size() + 1) / 2);
  const auto size = static_cast<std::size_t>(encoding->planes) * 64;
  std::vector<float> planes(calibrating * size);
  for (std::size_t i = 0; i < calibrating; ++i)
    encoding->encode((*positions)[i].game, std::span(planes).subspan(i * size, size));
  const std::vector<SamplePosition> rest(
      positions->begin() +
          static_cast<std::ptrdiff_t>(calibrating == positions->size() ? 0 : calibrating),
      positions->end());

  const auto report = [](const char* name, const Agreement& g) {
    fmt::print(
        "{}: {:.2f} % same first choice, KL {:.2g}, values {:.2g} apart (root mean square)\n", name,
        100 * g.top1(), g.kl(), g.value_rmse());
  };
  const nn::CpuLevel level = nn::best_cpu_level();
  fmt::print("{} positions beside fp32\n", rest.size());
  if (nn::cpu_supports(level, nn::Arithmetic::Bf16)) {
    const auto g = agreement(*net, nn::Precision::Bf16, rest, interrupt.token(), line, "bf16");
    if (!g) return tl::unexpected(g.error());
    report("bf16", *g);
    net->metadata[nn::kBf16Agreement] = fmt::format("{:.4f}", g->top1());
  } else {
    fmt::print("bf16: this processor has no bfloat16 products; what the file says of it stays\n");
  }
  const auto ranges = nn::calibrate_int8(*net, planes, static_cast<int>(calibrating));
  if (!ranges) {
    fmt::print("{}\n", ranges.error().message);
    net->metadata.erase("int8_ranges");
    net->metadata.erase(nn::kInt8Agreement);
  } else {
    net->metadata["int8_ranges"] = nn::to_json(*ranges);
    net->metadata.erase(nn::kInt8Agreement);
    if (nn::cpu_supports(level, nn::Arithmetic::Int8)) {
      const auto g = agreement(*net, nn::Precision::Int8, rest, interrupt.token(), line, "int8");
      if (!g) return tl::unexpected(g.error());
      report("int8", *g);
      net->metadata[nn::kInt8Agreement] = fmt::format("{:.4f}", g->top1());
    } else {
      fmt::print("int8: calibrated, but this processor has no byte products to try it with\n");
    }
  }
  if (const auto done = nn::write_net(*net, options.out); !done) return done;
  fmt::print("{}: written\n", options.out.string());
  return {};
}

void add_quantize(CLI::App& command, int& exit_code) {
  CLI::App* quantizing = command.add_subcommand(
      "quantize", "fit a net for bf16 and int8, and measure how far they agree with fp32");
  const auto o = std::make_shared<QuantizeOptions>();
  quantizing->add_option("in", o->in, "file, or name of a net in this program")->required();
  quantizing->add_option("out", o->out, ".safetensors file to write (may be the same)")->required();
  quantizing
      ->add_option("--positions", o->positions,
                   "games (.pgn, .pgn.zst), training shards (folder or .tshard), or FENs or EPD")
      ->required();
  quantizing->add_option("--count", o->sample.count, "positions drawn from them")
      ->check(CLI::Range(2, 10'000'000))
      ->capture_default_str();
  quantizing->add_option("--seed", o->sample.seed, "of the draw")->capture_default_str();
  quantizing->add_option("--split", o->split, "of a folder of shards")
      ->check(CLI::IsMember({"train", "val", "test"}))
      ->capture_default_str();
  quantizing->callback([=, &exit_code] {
    if (o->out.extension() != ".safetensors")
      throw CLI::ValidationError(
          fmt::format("out: {} does not end in .safetensors", tahl::quoted(o->out.string())));
    const Expected<void> done = quantize(*o);
    exit_code = done ? 0 : print_error(done.error());
  });
}

void add_show(CLI::App& command, int& exit_code) {
  CLI::App* showing = command.add_subcommand("show", "what a net is, and where it comes from");
  const auto name = std::make_shared<std::string>();
  const auto as_json = std::make_shared<bool>(false);
  showing->add_option("net", *name, "file, or name of a net in this program (the default one)");
  showing->add_flag("--json", *as_json, "as one line of JSON, with all metadata");
  showing->callback([=, &exit_code] { exit_code = show(*name, *as_json); });
}

void add_convert(CLI::App& command, int& exit_code) {
  CLI::App* converting = command.add_subcommand("convert", "write a net in another format");
  const auto options = std::make_shared<ConvertOptions>();
  converting->add_option("in", options->in, "file, or name of a net in this program")->required();
  converting
      ->add_option("out", options->out,
                   "file to write: .safetensors, or .pt for RDTChess (its plain network only)")
      ->required();
  converting
      ->add_option("--dtype", options->dtype,
                   "how .safetensors stores weights; norms and biases stay f32")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  converting->callback([=, &exit_code] {
    const fs::path extension = options->out.extension();
    if (extension != ".safetensors" && extension != ".pt")
      throw CLI::ValidationError(fmt::format("out: {} ends neither in .safetensors nor in .pt",
                                             tahl::quoted(options->out.string())));
    if (extension == ".pt" && !options->dtype.empty())
      throw CLI::ValidationError("--dtype: a .pt file is f32");
    exit_code = convert(*options);
  });
}

void add_compare(CLI::App& command, int& exit_code) {
  CLI::App* comparing =
      command.add_subcommand("compare", "how far two nets agree, or two ways to compute one");
  const auto o = std::make_shared<CompareOptions>();
  comparing->add_option("a", o->a, "file, or name of a net in this program")->required();
  comparing->add_option("b", o->b, "another, or the same")->required();
  comparing
      ->add_option("--positions", o->positions,
                   "games (.pgn, .pgn.zst), training shards (folder or .tshard), or FENs or EPD")
      ->required();
  comparing->add_option("--count", o->sample.count, "positions drawn from them")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  comparing->add_option("--seed", o->sample.seed, "of the draw")->capture_default_str();
  comparing->add_option("--split", o->split, "of a folder of shards")
      ->check(CLI::IsMember({"train", "val", "test"}))
      ->capture_default_str();
  for (auto [name, precision] :
       {std::pair("--precision-a", &o->precision_a), std::pair("--precision-b", &o->precision_b)})
    comparing->add_option(name, *precision, "of the net's arithmetic")
        ->check(CLI::IsMember({"auto", "fp32", "bf16", "int8"}))
        ->capture_default_str();
  comparing->add_option("--threads", o->threads, "of each net")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  comparing->add_flag("--json", o->json, "as one line of JSON");
  comparing->callback([=, &exit_code] {
    const Expected<void> done = compare(*o);
    exit_code = done ? 0 : print_error(done.error());
  });
}

}  // namespace

void add_net_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("net", "look at nets, convert and compare them");
  command->require_subcommand(1);
  add_show(*command, exit_code);
  add_convert(*command, exit_code);
  add_compare(*command, exit_code);
  add_quantize(*command, exit_code);
}

}  // namespace tahl::app
