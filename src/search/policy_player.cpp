#include "search/policy_player.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "search/rules.h"
#include "search/static_eval.h"
#include "search/time_control.h"

namespace tahl::search {
namespace {

// Ranks, best last.
enum Rank : int { kIntoMate, kDraws, kMayDraw, kPlain, kTakesDraw, kMatesLater, kMates };

// What counts as winning or losing: the network's word, or three pawns that it may not have seen.
constexpr double kDecidedValue = .3;
constexpr int kDecidedMaterial = 300;

bool is_drawn_now(const Game& game) {
  const auto outcome = game.outcome();
  return outcome && outcome->result == Result::Draw;
}

// True if the side to move can draw with its next move.
bool can_draw(Game& game) {
  for (const Move reply : legal_moves(game.position())) {
    game.play(reply);
    const bool drawn = is_drawn_now(game);
    game.undo();
    if (drawn) return true;
  }
  return false;
}

class PolicyPlayer : public Player {
 public:
  PolicyPlayer(std::unique_ptr<nn::Evaluator> evaluator, const PolicyOptions& options)
      : evaluator_(std::move(evaluator)), options_(options), lots_(options.seed) {}

  Choice choose(const Game& game, const Limits& limits, std::stop_token stop,
                const Report& report) override;
  void seed(std::uint64_t seed) override { lots_.seed(seed); }
  std::string name() const override { return evaluator_->name(); }

 private:
  std::unique_ptr<nn::Evaluator> evaluator_;
  PolicyOptions options_;
  std::mt19937_64 lots_;
};

Choice PolicyPlayer::choose(const Game& game, const Limits& limits, std::stop_token stop,
                            const Report& report) {
  SearchClock clock(limits, game.position().side_to_move());
  Choice choice;
  const MoveList legal = legal_moves(game.position());
  if (legal.empty()) return choice;
  const nn::Evaluation evaluation = evaluator_->evaluate(game, legal);
  const std::vector<float> p = nn::softmax(evaluation.logits);
  std::vector<int> ranks = finish_ranks(game, legal, evaluation.value, options_.finish_plies);
  std::vector<int> allowed(static_cast<std::size_t>(legal.size()), 1);
  if (!limits.search_moves.empty())
    for (int i = 0; i < legal.size(); ++i)
      allowed[static_cast<std::size_t>(i)] = static_cast<int>(
          std::count(limits.search_moves.begin(), limits.search_moves.end(), legal[i]));
  if (std::count(allowed.begin(), allowed.end(), 0) == legal.size())
    allowed.assign(allowed.size(), 1);

  // In order of preference: allowed, rank, probability.
  std::vector<std::size_t> order(static_cast<std::size_t>(legal.size()));
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if ((allowed[a] > 0) != (allowed[b] > 0)) return allowed[a] > 0;
    if (ranks[a] != ranks[b]) return ranks[a] > ranks[b];
    return p[a] > p[b];
  });
  std::vector<float> logits;
  for (const std::size_t i : order) {
    if ((allowed[i] > 0) != (allowed[order[0]] > 0) || ranks[i] != ranks[order[0]]) break;
    logits.push_back(evaluation.logits[i]);
  }
  if (options_.temperature > 0 && logits.size() > 1) {
    const std::vector<float> weights =
        nn::softmax(logits, static_cast<float>(options_.temperature));
    // Not std::discrete_distribution, whose draws differ between standard libraries.
    double lot = static_cast<double>(lots_() >> 11) * 0x1p-53;
    std::size_t drawn = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > 0) drawn = i;
      if ((lot -= weights[i]) < 0) break;
    }
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(drawn),
                order.begin() + static_cast<std::ptrdiff_t>(drawn) + 1);
  }

  choice.move = legal[static_cast<int>(order[0])];
  for (int i = 0; i < legal.size(); ++i)
    choice.policy.emplace_back(legal[i], p[static_cast<std::size_t>(i)]);
  Info& info = choice.info;
  info.depth = info.seldepth = 1;
  info.nodes = 1;
  const std::size_t lines =
      std::min(order.size(), static_cast<std::size_t>(std::max(1, limits.multi_pv)));
  for (std::size_t k = 0; k < lines; ++k) {
    Line line;
    line.moves = {legal[static_cast<int>(order[k])]};
    line.p = p[order[k]];
    line.value = evaluation.value;
    if (ranks[order[k]] == kMates || ranks[order[k]] == kMatesLater) {
      line.value = 1;
      line.mate_in = ranks[order[k]] == kMates ? 1 : 2;
    }
    info.lines.push_back(std::move(line));
  }
  info.time = clock.elapsed();
  if (report) report(info);
  clock.hold(stop);
  return choice;
}

}  // namespace

std::vector<int> finish_ranks(const Game& game, const MoveList& legal, double value,
                              int finish_plies) {
  std::vector<int> ranks(static_cast<std::size_t>(legal.size()), kPlain);
  if (finish_plies <= 0) return ranks;
  const Position& position = game.position();
  const Color us = position.side_to_move();
  const int lead = material(position, us) - material(position, ~us);
  const bool winning = value > kDecidedValue || lead >= kDecidedMaterial;
  const bool losing = value < -kDecidedValue || lead <= -kDecidedMaterial;
  Game next = game;
  bool mates = false;
  for (int i = 0; i < legal.size(); ++i) {
    int& rank = ranks[static_cast<std::size_t>(i)];
    next.play(legal[i]);
    const MoveList replies = legal_moves(next.position());
    if (replies.empty() && next.position().is_check()) {
      rank = kMates;
      mates = true;
    } else if (is_drawn_now(next)) {
      if (winning) rank = kDraws;
      if (losing && finish_plies >= 2 && !winning) rank = kTakesDraw;
    } else if (finish_plies >= 2 && find_mate_in_one(next.position(), replies)) {
      rank = kIntoMate;
    } else if (winning && (next.repetitions() > 1 || can_draw(next))) {
      rank = kMayDraw;
    }
    next.undo();
  }
  if (finish_plies >= 2 && !mates) {
    for (int i = 0; i < legal.size(); ++i) {
      MoveList one;
      one.push_back(legal[i]);
      if (!find_mate(position, one, 2).empty() && ranks[static_cast<std::size_t>(i)] > kDraws)
        ranks[static_cast<std::size_t>(i)] = kMatesLater;
    }
  }
  return ranks;
}

std::unique_ptr<Player> policy_player(std::unique_ptr<nn::Evaluator> evaluator,
                                      const PolicyOptions& options) {
  return std::make_unique<PolicyPlayer>(std::move(evaluator), options);
}

}  // namespace tahl::search
