#include "nn/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/encoding.h"
#include "nn/policy_map.h"

namespace tahl::nn {
namespace {

constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

class NetworkEvaluator : public Evaluator {
 public:
  NetworkEvaluator(std::unique_ptr<Network> network, const Encoding& encoding, PolicyHead head,
                   std::string name)
      : network_(std::move(network)), encoding_(encoding), head_(head), name_(std::move(name)) {}

  std::vector<Evaluation> evaluate(std::span<const EvalRequest> batch) override {
    const auto inputs = static_cast<std::size_t>(encoding_.planes) * 64;
    const NetInfo& info = network_->info();
    const auto outputs = static_cast<std::size_t>(info.policy_outputs);
    const auto values = static_cast<std::size_t>(info.value_outputs);
    planes_.resize(batch.size() * inputs);
    policy_.resize(batch.size() * outputs);
    value_.resize(batch.size() * values);
    terms_.clear();
    wanted_.clear();
    wanted_begin_.assign(1, 0);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Position& position = batch[i].game->position();
      encoding_.encode(*batch[i].game, std::span(planes_).subspan(i * inputs, inputs));
      const Frame frame = encoding_.frame(position);
      for (const Move m : *batch[i].legal) {
        const PolicyTerms& t = terms_.emplace_back(policy_terms(head_, position, m, frame));
        wanted_.insert(wanted_.end(), t.output.begin(), t.output.begin() + t.count);
      }
      wanted_begin_.push_back(static_cast<std::uint32_t>(wanted_.size()));
    }
    network_->forward(planes_, static_cast<int>(batch.size()), {wanted_, wanted_begin_}, policy_,
                      value_);

    std::vector<Evaluation> evaluations(batch.size());
    const PolicyTerms* terms = terms_.data();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const float* value = &value_[i * values];
      Evaluation& e = evaluations[i];
      e.value = std::clamp(values == 3 ? value[0] - value[2] : value[0], -1.f, 1.f);
      e.draw = values == 3 ? value[1] : 0;
      e.logits.reserve(static_cast<std::size_t>(batch[i].legal->size()));
      for (int k = 0; k < batch[i].legal->size(); ++k, ++terms)
        e.logits.push_back(terms->count == 0 ? kNoLogit : terms->sum(&policy_[i * outputs]));
    }
    return evaluations;
  }

  std::unique_ptr<Evaluator> clone() const override {
    return std::make_unique<NetworkEvaluator>(network_->clone(), encoding_, head_, name_);
  }
  std::string name() const override { return name_; }
  int positions_read() const override {
    return network_->info().encoding == "rdt19" ? 1 : Evaluator::positions_read();
  }

 private:
  std::unique_ptr<Network> network_;
  const Encoding& encoding_;
  PolicyHead head_;
  std::string name_;
  std::vector<float> planes_, policy_, value_;
  std::vector<PolicyTerms> terms_;  // of every legal move of the batch
  std::vector<std::uint16_t> wanted_;
  std::vector<std::uint32_t> wanted_begin_;
};

class UniformEvaluator : public Evaluator {
 public:
  std::vector<Evaluation> evaluate(std::span<const EvalRequest> batch) override {
    std::vector<Evaluation> evaluations;
    evaluations.reserve(batch.size());
    for (const EvalRequest& request : batch)
      evaluations.emplace_back().logits.resize(static_cast<std::size_t>(request.legal->size()));
    return evaluations;
  }
  std::unique_ptr<Evaluator> clone() const override { return uniform_evaluator(); }
  std::string name() const override { return "uniform"; }
  int positions_read() const override { return 1; }
};

Expected<std::unique_ptr<Evaluator>> from_network(Expected<std::unique_ptr<Network>> network,
                                                  const std::string& name) {
  if (!network) return tl::unexpected(network.error());
  const NetInfo& info = (*network)->info();
  const Encoding* encoding = find_encoding(info.encoding);
  if (encoding == nullptr) {
    std::string names;
    for (const Encoding& known : encodings())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    return fail("{}: the net wants the encoding {}; this program has {}", name,
                tahl::quoted(info.encoding), names);
  }
  if (encoding->planes != info.input_planes)
    return fail("{}: the net has {} input planes, {} has {}", name, info.input_planes,
                encoding->name, encoding->planes);
  const Expected<PolicyHead> head = parse_policy_head(info.arch.policy_head);
  if (!head) return fail("{}: {}", name, head.error().message);
  return std::make_unique<NetworkEvaluator>(std::move(*network), *encoding, *head, name);
}

}  // namespace

Evaluation Evaluator::evaluate(const Game& game, const MoveList& legal) {
  const EvalRequest request{&game, &legal};
  return std::move(evaluate(std::span(&request, 1)).front());
}

Expected<std::unique_ptr<Evaluator>> load_evaluator(const std::string& path,
                                                    const NetworkOptions& options) {
  const std::span<const EmbeddedNet> embedded = embedded_nets();
  if (path.empty() && embedded.empty())
    return fail("net: this program was built without one; name a net file");
  for (const EmbeddedNet& net : embedded)
    if (path.empty() || path == net.name)
      return from_network(load_cpu_network(net.bytes, std::string(net.name), options),
                          std::string(net.name));
  return from_network(load_cpu_network(std::filesystem::path(path), options),
                      std::filesystem::path(path).filename().string());
}

Expected<std::unique_ptr<Evaluator>> make_evaluator(const NetFile& net,
                                                    const NetworkOptions& options,
                                                    const std::string& name) {
  return from_network(make_cpu_network(net, options), name);
}

std::unique_ptr<Evaluator> uniform_evaluator() { return std::make_unique<UniformEvaluator>(); }

std::vector<float> softmax(std::span<const float> logits, float temperature) {
  std::vector<float> p(logits.size());
  if (p.empty()) return p;
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) {
    p[static_cast<std::size_t>(largest - logits.begin())] = 1;
    return p;
  }
  if (!std::isfinite(
          *largest)) {  // no move has a logit (or one is infinite): nothing to tell them apart by
    std::fill(p.begin(), p.end(), 1.f / static_cast<float>(p.size()));
    return p;
  }
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] = std::exp((logits[i] - *largest) / temperature);
    sum += p[i];
  }
  for (float& x : p) x = static_cast<float>(x / sum);
  return p;
}

}  // namespace tahl::nn
