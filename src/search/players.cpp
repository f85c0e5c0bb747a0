#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "search/alphabeta.h"
#include "search/mcts.h"
#include "search/policy_player.h"
#include "search/time_control.h"

namespace tahl::search {
namespace {

constexpr std::string_view kKinds[] = {"policy", "mcts", "minimax", "random"};

class RandomPlayer : public Player {
 public:
  explicit RandomPlayer(std::uint64_t seed) : lots_(seed) {}
  Choice choose(const Game& game, const Limits& limits, std::stop_token stop,
                const Report& report) override {
    SearchClock clock(limits, game.position().side_to_move());
    const MoveList legal = legal_moves(game.position());
    MoveList candidates;
    for (const Move m : legal)
      if (std::count(limits.search_moves.begin(), limits.search_moves.end(), m))
        candidates.push_back(m);
    if (candidates.empty()) candidates = legal;
    Choice choice;
    if (legal.empty()) return choice;
    choice.move = candidates[static_cast<int>(lots_() % static_cast<unsigned>(candidates.size()))];
    for (const Move m : legal) choice.policy.emplace_back(m, 1. / legal.size());
    choice.info.depth = choice.info.seldepth = 1;
    choice.info.nodes = 1;
    Line line;
    line.moves = {choice.move};
    line.p = 1. / legal.size();
    choice.info.lines = {line};
    if (report) report(choice.info);
    clock.hold(stop);
    return choice;
  }
  void seed(std::uint64_t seed) override { lots_.seed(seed); }
  std::string name() const override { return "random"; }

 private:
  std::mt19937_64 lots_;
};

// Reads the options of a spec one by one; what is left over or wrong becomes one error.
class OptionReader {
 public:
  explicit OptionReader(const PlayerSpec& spec) : spec_(spec), used_(spec.options.size(), false) {}

  const std::string* text(std::string_view name) {
    const std::string* value = nullptr;
    for (std::size_t i = 0; i < spec_.options.size(); ++i) {
      if (spec_.options[i].first != name) continue;
      used_[i] = true;
      value = &spec_.options[i].second;  // the last one counts
    }
    return value;
  }

  template <class T>
  void number(std::string_view name, T least, T most, T& out) {
    const std::string* value = text(name);
    if (!value) return;
    T x{};
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, x);
    if (error == std::errc() && stop == end && x >= least && x <= most) {  // false for not-a-number
      out = x;
    } else if (!error_) {
      error_ =
          Error{fmt::format("player {}: {}={} is not a number from {} to {}",
                            tahl::quoted(spec_.text), name, tahl::quoted(*value), least, most)};
    }
  }
  template <class T>
  void number(std::string_view name, T least, T most, std::optional<T>& out) {
    T x = least - 1;
    number(name, least, most, x);
    if (x >= least) out = x;
  }
  void milliseconds(std::string_view name, std::optional<std::chrono::milliseconds>& out) {
    std::optional<std::int64_t> ms;
    number<std::int64_t>(name, 1, 1'000'000'000, ms);
    if (ms) out = std::chrono::milliseconds(*ms);
  }

  Expected<void> finish() const {
    if (error_) return tl::unexpected(*error_);
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i])
        return fail("player {}: {} has no option {}", tahl::quoted(spec_.text), spec_.kind,
                    tahl::quoted(spec_.options[i].first));
    return {};
  }

 private:
  const PlayerSpec& spec_;
  std::vector<bool> used_;
  std::optional<Error> error_;
};

// What a spec says of its net.
struct NetOptions {
  std::string net;
  nn::NetworkOptions network;
  int cache_megabytes = 0;
};

Expected<NetOptions> read_net_options(const PlayerSpec& spec, OptionReader& options) {
  NetOptions o;
  if (const std::string* net = options.text("net")) o.net = *net;
  options.number("threads", 1, 1024, o.network.threads);
  if (const std::string* name = options.text("precision")) {
    const auto precision = nn::parse_precision(*name);
    if (!precision)
      return fail("player {}: {}", tahl::quoted(spec.text), precision.error().message);
    o.network.precision = *precision;
  }
  return o;
}

Expected<std::unique_ptr<nn::Evaluator>> evaluator_for(const PlayerSpec& spec,
                                                       const NetOptions& options,
                                                       nn::EvaluatorPool* pool) {
  nn::EvaluatorPool own;
  auto evaluator = (pool ? *pool : own).take(options.net, options.network, options.cache_megabytes);
  if (!evaluator) return fail("player {}: {}", tahl::quoted(spec.text), evaluator.error().message);
  return evaluator;
}

}  // namespace

Expected<PlayerSpec> parse_player_spec(std::string_view text) {
  PlayerSpec spec;
  spec.text = text;
  const std::size_t colon = text.find(':');
  spec.kind = text.substr(0, colon);
  if (std::find(std::begin(kKinds), std::end(kKinds), spec.kind) == std::end(kKinds))
    return fail("player {}: {} is none of policy, mcts, minimax, random", tahl::quoted(text),
                tahl::quoted(spec.kind));
  if (colon == std::string_view::npos) return spec;
  for (std::string_view rest = text.substr(colon + 1); !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos)
      return fail("player {}: {} is not name=value", tahl::quoted(text), tahl::quoted(item));
    spec.options.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return spec;
}

bool is_bounded(const PlayerSpec& spec) {
  if (spec.kind != "mcts" && spec.kind != "minimax") return true;
  return std::any_of(spec.options.begin(), spec.options.end(), [](const auto& option) {
    return option.first == "nodes" || option.first == "depth" || option.first == "movetime";
  });
}

Expected<std::unique_ptr<Player>> make_player(const PlayerSpec& spec, std::uint64_t seed,
                                              nn::EvaluatorPool* pool) {
  OptionReader options(spec);
  constexpr auto kMaxSeed = std::numeric_limits<std::uint64_t>::max();
  constexpr std::int64_t kMaxNodes = 4'000'000'000;

  if (spec.kind == "random") {
    options.number<std::uint64_t>("seed", 0, kMaxSeed, seed);
    if (auto done = options.finish(); !done) return tl::unexpected(done.error());
    return std::make_unique<RandomPlayer>(seed);
  }
  if (spec.kind == "minimax") {
    AlphaBetaOptions o;
    options.number("depth", 1, kMaxDepth, o.depth);
    options.number<std::int64_t>("nodes", 1, kMaxNodes, o.nodes);
    options.milliseconds("movetime", o.movetime);
    options.number("hash", 1, 65536, o.hash_megabytes);
    if (auto done = options.finish(); !done) return tl::unexpected(done.error());
    return alphabeta_player(o);
  }
  Expected<NetOptions> net = read_net_options(spec, options);
  if (!net) return tl::unexpected(net.error());
  if (spec.kind == "policy") {
    PolicyOptions o;
    o.seed = seed;
    options.number("temperature", 0., 100., o.temperature);
    options.number("finish", 0, 2, o.finish_plies);
    options.number<std::uint64_t>("seed", 0, kMaxSeed, o.seed);
    if (auto done = options.finish(); !done) return tl::unexpected(done.error());
    auto evaluator = evaluator_for(spec, *net, pool);
    if (!evaluator) return tl::unexpected(evaluator.error());
    return policy_player(*std::move(evaluator), o);
  }
  if (spec.kind == "mcts") {
    MctsOptions o;
    o.seed = seed;
    options.number("cpuct", 0., 100., o.cpuct);
    options.number("cpuct_base", 1., 1e9, o.cpuct_base);
    options.number("cpuct_factor", 0., 100., o.cpuct_factor);
    options.number("fpu", 0., 10., o.fpu_reduction);
    options.number("policy_temperature", .01, 100., o.policy_temperature);
    options.number("batch", 1, 256, o.batch);
    options.number("hash", 1, 65536, o.tree_megabytes);
    options.number("temperature", 0., 100., o.temperature);
    options.number<std::uint64_t>("seed", 0, kMaxSeed, o.seed);
    options.number<std::int64_t>("nodes", 1, kMaxNodes, o.nodes);
    options.number("depth", 1, kMaxDepth, o.depth);
    options.milliseconds("movetime", o.movetime);
    int reuse = 1;
    options.number("reuse", 0, 1, reuse);
    o.reuse_tree = reuse != 0;
    net->cache_megabytes = 32;
    options.number("cache", 0, 65536, net->cache_megabytes);
    if (auto done = options.finish(); !done) return tl::unexpected(done.error());
    auto evaluator = evaluator_for(spec, *net, pool);
    if (!evaluator) return tl::unexpected(evaluator.error());
    return mcts_player(*std::move(evaluator), o);
  }
  return fail("player {}: {} is none of policy, mcts, minimax, random", tahl::quoted(spec.text),
              tahl::quoted(spec.kind));
}

}  // namespace tahl::search
