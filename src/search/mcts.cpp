#include "search/mcts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "search/mcts_tree.h"
#include "search/rules.h"
#include "search/time_control.h"

namespace tahl::search {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxLine = 100;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

class MctsPlayer : public Player {
 public:
  MctsPlayer(std::unique_ptr<nn::Evaluator> evaluator, const MctsOptions& options)
      : evaluator_(std::move(evaluator)),
        options_(options),
        tree_(options.tree_megabytes),
        lots_(options.seed) {
    options_.batch = std::clamp(options_.batch, 1, 256);
  }

  Choice choose(const Game& game, const Limits& limits, std::stop_token stop,
                const Report& report) override;
  void new_game() override { tree_.clear(); }
  void seed(std::uint64_t seed) override { lots_.seed(seed); }
  std::string name() const override {
    return options_.nodes ? fmt::format("{} mcts {}", evaluator_->name(), *options_.nodes)
                          : fmt::format("{} mcts", evaluator_->name());
  }

 private:
  // A leaf on its way to the evaluator, and how it was reached.
  struct Descent {
    Game game;
    std::vector<std::uint32_t> path;  // nodes, the root first
    MoveList legal;
  };
  enum class Arrival { NeedsEvaluation, Known, Collision };

  void set_root(const Game& game, bool may_reuse);
  void expand_root(const MoveList& moves);
  bool run_batch(std::int64_t node_limit);  // false if it could do nothing
  Arrival descend(Descent& d);
  std::uint32_t select(std::uint32_t node);  // an edge, as an offset from the node's first
  void back_up(const std::vector<std::uint32_t>& path, double value);
  void forget(const std::vector<std::uint32_t>& path);
  void prove(const std::vector<std::uint32_t>& path);

  std::vector<const Edge*> ranked_edges(const Node& node) const;
  Line line(const Edge& first, const Game& game) const;
  Info info(const Game& game, int multi_pv, const SearchClock& clock) const;
  std::optional<Choice> choose_mate(const Game& game, const MoveList& moves, int mate,
                                    SearchClock& clock, const std::stop_token& stop);
  Move draw_move();

  std::unique_ptr<nn::Evaluator> evaluator_;
  MctsOptions options_;
  Tree tree_;  // node 0 is the root
  std::mt19937_64 lots_;

  Game root_game_;                // that of node 0, if the tree is not empty
  bool root_is_partial_ = false;  // searched with some moves only
  std::vector<Descent> descents_;
  int deepest_ = 0;
};

// Keeps what the last search knows of this position, where it comes from the same game.
void MctsPlayer::set_root(const Game& game, bool may_reuse) {
  const auto found = [&]() -> std::uint32_t {
    if (!may_reuse || !options_.reuse_tree || tree_.empty() || root_is_partial_) return kNoNode;
    const auto& before = root_game_.moves();
    const auto& now = game.moves();
    if (now.size() < before.size() || !std::equal(before.begin(), before.end(), now.begin()))
      return kNoNode;
    if (!game.start().same_as(root_game_.start()) ||
        game.start().halfmove_clock() != root_game_.start().halfmove_clock())
      return kNoNode;
    std::uint32_t node = 0;
    for (std::size_t i = before.size(); i < now.size() && node != kNoNode; ++i) {
      const Node& n = std::as_const(tree_)[node];
      const Edge* begin = tree_.edges(n);
      const Edge* end = begin + n.edge_count;
      const Edge* e = std::find_if(begin, end, [&](const Edge& x) { return x.move == now[i]; });
      node = e == end ? kNoNode : e->child;
    }
    return node != kNoNode && tree_[node].kind == NodeKind::Expanded ? node : kNoNode;
  }();
  if (found == kNoNode) {
    tree_.clear();
    tree_.add_node();
  } else if (found != 0) {
    tree_.keep_only(found);
  }
  root_game_ = game;
  root_is_partial_ = false;
  descents_.clear();
  descents_.resize(static_cast<std::size_t>(options_.batch));
  for (Descent& d : descents_) d.game = game;
}

void MctsPlayer::expand_root(const MoveList& moves) {
  const nn::Evaluation evaluation = evaluator_->evaluate(root_game_, moves);
  tree_.expand(0, moves,
               nn::softmax(evaluation.logits, static_cast<float>(options_.policy_temperature)));
  tree_[0].visits = 1;
  tree_[0].value_sum = evaluation.value;
  // A mate in one is played even if there is time for nothing else.
  if (const auto mate = find_mate_in_one(root_game_.position(), moves)) {
    const Node& root = tree_[0];
    Edge* edge = std::find_if(tree_.edges(root), tree_.edges(root) + root.edge_count,
                              [&](const Edge& e) { return e.move == *mate; });
    edge->child = tree_.add_node();
    Node& child = tree_[edge->child];
    child.kind = NodeKind::Leaf;
    child.proof = Proof::loss(0);
    child.visits = 1;
    child.value_sum = -1;
    tree_[0].visits = 2;
    tree_[0].value_sum += 1;
    update_proof(tree_, 0);
  }
}

std::uint32_t MctsPlayer::select(std::uint32_t index) {
  const Node& node = tree_[index];
  const Edge* edges = tree_.edges(node);
  const double children = std::max(1., static_cast<double>(node.visits) + node.in_flight - 2);
  const double cpuct =
      options_.cpuct +
      options_.cpuct_factor * std::log((children + options_.cpuct_base) / options_.cpuct_base);
  const double explore = cpuct * std::sqrt(children);
  double visited_policy = 0;
  double best = -std::numeric_limits<double>::infinity();
  std::uint32_t chosen = kNoNode;
  for (std::uint32_t i = 0; i < node.edge_count; ++i) {
    const Edge& e = edges[i];
    if (e.child == kNoNode) {
      // The others without a visit have the same value and no larger prior.
      const double q = node.value() - options_.fpu_reduction * std::sqrt(visited_policy);
      if (q + explore * e.prior > best) chosen = i;
      break;
    }
    const Node& child = tree_[e.child];
    visited_policy += e.prior;
    if (child.proof.is_win()) continue;  // the opponent's
    const double n = static_cast<double>(child.visits) + child.in_flight;
    const double q =
        n == 0 ? node.value() : (-child.value_sum - child.in_flight) / n;  // in flight: lost
    const double score = q + explore * e.prior / (1 + n);
    if (score > best) {
      best = score;
      chosen = i;
    }
  }
  return chosen;
}

MctsPlayer::Arrival MctsPlayer::descend(Descent& d) {
  while (d.game.ply() > root_game_.ply()) d.game.undo();
  d.path.assign(1, 0);
  ++tree_[0].in_flight;
  std::uint32_t current = 0;
  while (tree_[current].kind == NodeKind::Expanded && (current == 0 || !tree_[current].proof)) {
    const std::uint32_t choice = select(current);
    if (choice == kNoNode || d.path.size() > 4096) return Arrival::Collision;
    const Edge edge = tree_.edges(tree_[current])[choice];
    std::uint32_t child = edge.child;
    if (child == kNoNode) {
      child = tree_.add_node();
      tree_.edges(tree_[current])[choice].child = child;
    }
    d.game.play(edge.move);
    current = child;
    d.path.push_back(current);
    ++tree_[current].in_flight;
  }
  deepest_ = std::max(deepest_, static_cast<int>(d.path.size()) - 1);
  Node& node = tree_[current];
  if (node.kind == NodeKind::Expanded) {  // proven
    back_up(d.path, node.proof.is_win() ? 1 : -1);
    return Arrival::Known;
  }
  if (node.kind == NodeKind::Leaf) {
    back_up(d.path, node.proof ? (node.proof.is_win() ? 1 : -1) : 0);
    return Arrival::Known;
  }
  if (node.in_flight > 1) return Arrival::Collision;

  const Position& position = d.game.position();
  legal_moves(position, d.legal);
  double value = 0;
  if (d.legal.empty()) {
    if (position.is_check()) {
      node.proof = Proof::loss(0);
      value = -1;
    }
  } else if (is_search_draw(d.game, root_game_.ply())) {
    node.is_repetition = position.halfmove_clock() < 100 && !has_insufficient_material(position);
  } else if (find_mate_in_one(position, d.legal)) {
    node.proof = Proof::win(1);
    value = 1;
  } else {
    return Arrival::NeedsEvaluation;
  }
  node.kind = NodeKind::Leaf;
  if (node.proof) prove(d.path);
  back_up(d.path, value);
  return Arrival::Known;
}

void MctsPlayer::back_up(const std::vector<std::uint32_t>& path, double value) {
  for (auto i = path.rbegin(); i != path.rend(); ++i, value = -value) {
    Node& n = tree_[*i];
    --n.in_flight;
    ++n.visits;
    n.value_sum += value;
  }
}

void MctsPlayer::forget(const std::vector<std::uint32_t>& path) {
  for (const std::uint32_t i : path) --tree_[i].in_flight;
}

void MctsPlayer::prove(const std::vector<std::uint32_t>& path) {
  for (auto i = path.rbegin() + 1; i != path.rend(); ++i)
    if (!update_proof(tree_, *i)) break;
}

bool MctsPlayer::run_batch(std::int64_t node_limit) {
  const std::int64_t visits = tree_[0].visits;
  // Leaves of one batch are chosen blindly; while the tree is small that costs more than the batch
  // saves.
  const auto wanted = static_cast<std::size_t>(
      std::min({static_cast<std::int64_t>(options_.batch), 1 + visits / 32, node_limit - visits}));
  std::size_t count = 0, known = 0;
  while (count < wanted && known < 8 * wanted && !tree_[0].proof &&
         static_cast<std::int64_t>(tree_[0].visits + count) < node_limit) {
    Descent& d = descents_[count];
    const Arrival arrival = descend(d);
    if (arrival == Arrival::Collision) {
      forget(d.path);
      break;
    }
    ++(arrival == Arrival::Known ? known : count);
    if (!tree_.has_room(wanted + 1)) break;
  }
  if (count > 0) {
    std::vector<nn::EvalRequest> batch;
    for (std::size_t i = 0; i < count; ++i)
      batch.push_back({&descents_[i].game, &descents_[i].legal});
    const std::vector<nn::Evaluation> evaluations = evaluator_->evaluate(batch);
    for (std::size_t i = 0; i < count; ++i) {
      const Descent& d = descents_[i];
      tree_.expand(
          d.path.back(), d.legal,
          nn::softmax(evaluations[i].logits, static_cast<float>(options_.policy_temperature)));
      back_up(d.path, evaluations[i].value);
    }
  }
  return count + known > 0;
}

// The best move first: shortest win, then most visits, then the loss that lasts longest.
std::vector<const Edge*> MctsPlayer::ranked_edges(const Node& node) const {
  std::vector<const Edge*> edges;
  for (std::uint32_t i = 0; i < node.edge_count; ++i) edges.push_back(tree_.edges(node) + i);
  static const Node kUnvisited;
  const auto child = [&](const Edge* e) -> const Node& {
    return e->child == kNoNode ? kUnvisited : tree_[e->child];
  };
  std::stable_sort(edges.begin(), edges.end(), [&](const Edge* x, const Edge* y) {
    const Node &a = child(x), &b = child(y);
    const auto rank = [](const Node& n) {
      return n.proof.is_loss() ? 2 : n.proof.is_win() ? 0 : 1;
    };
    if (rank(a) != rank(b)) return rank(a) > rank(b);
    if (a.proof.is_loss()) return a.proof.plies() < b.proof.plies();
    if (a.proof.is_win()) return a.proof.plies() > b.proof.plies();
    if (a.visits != b.visits) return a.visits > b.visits;
    return a.value() < b.value();
  });
  return edges;
}

Line MctsPlayer::line(const Edge& first, const Game& game) const {
  const Node& root = tree_[0];
  Line line;
  line.moves = {first.move};
  const bool visited = first.child != kNoNode && tree_[first.child].visits > 0;
  line.value = visited ? -tree_[first.child].value() : root.value();
  line.p = root.visits <= 1 ? first.prior
           : !visited       ? 0
                            : tree_[first.child].visits / (root.visits - 1.);
  if (first.child == kNoNode) return line;
  if (const Proof proof = tree_[first.child].proof) {
    line.value = proof.is_loss() ? 1 : -1;
    line.mate_in = proof.is_loss() ? (proof.plies() + 2) / 2 : -((proof.plies() + 1) / 2);
  }
  Position position = game.position();
  position.make(first.move);
  std::uint32_t node = first.child;
  while (tree_[node].kind == NodeKind::Expanded && line.moves.size() < kMaxLine) {
    const Edge* next = ranked_edges(tree_[node]).front();
    if (next->child == kNoNode || (tree_[next->child].visits == 0 && !tree_[next->child].proof))
      break;
    line.moves.push_back(next->move);
    position.make(next->move);
    node = next->child;
  }
  if (tree_[node].kind == NodeKind::Leaf && tree_[node].proof.is_win())  // a mate in one
    if (const auto mate = find_mate_in_one(position, legal_moves(position)))
      line.moves.push_back(*mate);
  return line;
}

Info MctsPlayer::info(const Game& game, int multi_pv, const SearchClock& clock) const {
  Info info;
  info.nodes = tree_[0].visits;
  info.time = clock.elapsed();
  for (const Edge* e : ranked_edges(tree_[0])) {
    if (static_cast<int>(info.lines.size()) >= std::max(1, multi_pv)) break;
    info.lines.push_back(line(*e, game));
  }
  if (!info.lines.empty()) info.depth = static_cast<int>(info.lines[0].moves.size());
  info.seldepth = std::max(deepest_, info.depth);
  return info;
}

// A mate in at most so many moves by trying all: the tree would find it too, but could not say that
// there is none.
std::optional<Choice> MctsPlayer::choose_mate(const Game& game, const MoveList& moves, int mate,
                                              SearchClock& clock, const std::stop_token& stop) {
  const std::vector<Move> line = find_mate(
      game.position(), moves, mate, [&] { return stop.stop_requested() || clock.past_hard(); });
  if (line.empty()) return std::nullopt;
  Choice choice;
  choice.move = line[0];
  if (line.size() > 1) choice.ponder = line[1];
  Line best;
  best.moves = line;
  best.value = best.p = 1;
  best.mate_in = static_cast<int>(line.size() + 1) / 2;
  choice.info.depth = choice.info.seldepth = static_cast<int>(line.size());
  choice.info.nodes = 1;
  choice.info.time = clock.elapsed();
  choice.info.lines = {best};
  return choice;
}

// By visits^(1 / temperature); a proven win is always played and a proven loss never, if there is a
// choice.
Move MctsPlayer::draw_move() {
  const std::vector<const Edge*> edges = ranked_edges(tree_[0]);
  const auto proof = [&](const Edge* e) {
    return e->child == kNoNode ? Proof() : tree_[e->child].proof;
  };
  if (options_.temperature <= 0 || proof(edges[0])) return edges[0]->move;
  std::vector<double> weights;
  double sum = 0;
  for (const Edge* e : edges) {
    double w = tree_[0].visits <= 1 ? e->prior : e->child == kNoNode ? 0. : tree_[e->child].visits;
    if (proof(e).is_win()) w = 0;
    weights.push_back(std::pow(w, 1 / options_.temperature));
    sum += weights.back();
  }
  if (!(sum > 0) || !std::isfinite(sum)) return edges[0]->move;
  double lot = static_cast<double>(lots_() >> 11) * 0x1p-53 * sum;
  for (std::size_t i = 0; i < edges.size(); ++i)
    if ((lot -= weights[i]) < 0) return edges[i]->move;
  return edges[0]->move;
}

Choice MctsPlayer::choose(const Game& game, const Limits& limits, std::stop_token stop,
                          const Report& report) {
  Limits capped = limits;
  if (options_.movetime)
    capped.movetime = std::min(*options_.movetime, limits.movetime.value_or(*options_.movetime));
  SearchClock clock(capped, game.position().side_to_move());
  const MoveList legal = legal_moves(game.position());
  Choice choice;
  if (legal.empty()) return choice;

  MoveList moves;
  for (const Move m : legal)
    if (std::count(limits.search_moves.begin(), limits.search_moves.end(), m)) moves.push_back(m);
  const bool partial = !moves.empty() && moves.size() < legal.size();
  if (moves.empty()) moves = legal;

  std::int64_t node_limit = options_.nodes.value_or(kNoLimit);
  if (limits.nodes && !limits.infinite) node_limit = std::min(node_limit, *limits.nodes);
  int depth_limit = options_.depth.value_or(kMaxLine);
  if (limits.depth && !limits.infinite) depth_limit = std::min(depth_limit, *limits.depth);
  const bool by_clock =
      limits.time[static_cast<std::size_t>(index(game.position().side_to_move()))].has_value();
  if (limits.mate) {
    if (auto mate = choose_mate(game, moves, *limits.mate, clock, stop)) {
      if (report) report(mate->info);
      for (const Move m : legal) mate->policy.emplace_back(m, m == mate->move ? 1. : 0.);
      clock.hold(stop);
      return *std::move(mate);
    }
    if (node_limit == kNoLimit && !by_clock && !capped.movetime) node_limit = 1;
  }
  node_limit = std::clamp<std::int64_t>(node_limit, 1, 0xfffffff0);

  set_root(game, !partial && node_limit > 1);
  root_is_partial_ = partial;
  deepest_ = 0;
  if (tree_[0].kind != NodeKind::Expanded) expand_root(moves);

  auto next_report = milliseconds(1000);
  while (!stop.stop_requested() && !tree_[0].proof && tree_[0].visits < node_limit) {
    const bool free = !clock.must_hold();
    if (free && clock.past_target()) break;
    if (free && by_clock && moves.size() == 1) break;
    if (!tree_.has_room(static_cast<std::size_t>(options_.batch) + 1)) break;
    if (depth_limit < kMaxLine) {
      const Line best = line(*ranked_edges(tree_[0]).front(), game);
      // A line that ends with the game will not get longer.
      const bool ended = tree_[0].visits > 100 && [&] {
        Game end = game;
        for (const Move m : best.moves) end.play(m);
        return legal_moves(end.position()).empty() || is_search_draw(end, game.ply());
      }();
      if (static_cast<int>(best.moves.size()) >= depth_limit || ended) break;
    }
    if (!run_batch(node_limit)) break;
    if (report && clock.elapsed() >= next_report) {
      report(info(game, limits.multi_pv, clock));
      next_report = clock.elapsed() + milliseconds(1000);
    }
  }
  clock.hold(stop);

  choice.move = draw_move();
  choice.info = info(game, limits.multi_pv, clock);
  if (report) report(choice.info);
  const Node& root = tree_[0];
  double total = 0;
  std::vector<std::pair<Move, double>> share;
  for (std::uint32_t i = 0; i < root.edge_count; ++i) {
    const Edge& e = tree_.edges(root)[i];
    const double w = root.visits <= 1 ? e.prior : e.child == kNoNode ? 0. : tree_[e.child].visits;
    share.emplace_back(e.move, w);
    total += w;
    if (e.move == choice.move) {
      const Line chosen = line(e, game);
      if (chosen.moves.size() > 1) choice.ponder = chosen.moves[1];
    }
  }
  for (const Move m : legal) {
    const auto found =
        std::find_if(share.begin(), share.end(), [&](const auto& s) { return s.first == m; });
    choice.policy.emplace_back(m, found == share.end() || total <= 0 ? 0. : found->second / total);
  }
  return choice;
}

}  // namespace

std::unique_ptr<Player> mcts_player(std::unique_ptr<nn::Evaluator> evaluator,
                                    const MctsOptions& options) {
  return std::make_unique<MctsPlayer>(std::move(evaluator), options);
}

}  // namespace tahl::search
