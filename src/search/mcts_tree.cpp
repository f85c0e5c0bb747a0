#include "search/mcts_tree.h"

#include <algorithm>
#include <numeric>

namespace tahl::search {

Tree::Tree(int megabytes) {
  const std::size_t bytes = static_cast<std::size_t>(std::max(1, megabytes)) << 20;
  // A node of a middlegame has thirty edges, so about a sixteenth of the bytes; of an endgame, a
  // seventh.
  nodes_.reserve(bytes / 7 / sizeof(Node));
  edges_.reserve((bytes - bytes / 7) / sizeof(Edge));
}

std::uint32_t Tree::add_node() {
  nodes_.emplace_back();
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

void Tree::expand(std::uint32_t node, const MoveList& moves, const std::vector<float>& priors) {
  std::vector<int> order(static_cast<std::size_t>(moves.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return priors[static_cast<std::size_t>(a)] > priors[static_cast<std::size_t>(b)];
  });
  Node& n = nodes_[node];
  n.edges = static_cast<std::uint32_t>(edges_.size());
  n.edge_count = static_cast<std::uint16_t>(moves.size());
  n.kind = NodeKind::Expanded;
  for (const int i : order)
    edges_.push_back({kNoNode, priors[static_cast<std::size_t>(i)], moves[i]});
}

void Tree::clear() {
  nodes_.clear();
  edges_.clear();
}

void Tree::keep_only(std::uint32_t root) {
  constexpr std::uint32_t kReached = kNoNode - 1;
  std::vector<std::uint32_t> moved(nodes_.size(), kNoNode);  // old index -> new
  moved[root] = kReached;
  std::uint32_t count = 0;
  for (std::size_t i = root; i < nodes_.size(); ++i) {  // parents first: one pass reaches all
    if (moved[i] == kNoNode) continue;
    moved[i] = count++;
    for (const Edge* e = edges(nodes_[i]); e != edges(nodes_[i]) + nodes_[i].edge_count; ++e)
      if (e->child != kNoNode) moved[e->child] = kReached;
  }
  for (std::size_t i = root; i < nodes_.size(); ++i) {
    if (moved[i] == kNoNode) continue;
    Node& n = nodes_[moved[i]] = nodes_[i];  // never to the right
    if (n.is_repetition) {
      n.is_repetition = false;
      n.kind = NodeKind::Fresh;
    }
    for (Edge* e = edges(n); e != edges(n) + n.edge_count; ++e)
      if (e->child != kNoNode) e->child = moved[e->child];
  }
  nodes_.resize(count);
  // Slide the edges that are left together, in the order in which they lie.
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return nodes_[a].edges < nodes_[b].edges; });
  std::uint32_t end = 0;
  for (const std::uint32_t i : order) {
    Node& n = nodes_[i];
    if (n.edge_count == 0) continue;
    std::copy_n(edges_.begin() + n.edges, n.edge_count, edges_.begin() + end);
    n.edges = end;
    end += n.edge_count;
  }
  edges_.resize(end);
}

bool update_proof(Tree& tree, std::uint32_t node) {
  Node& n = tree[node];
  int shortest_win = 1 << 14, longest_loss = 0;
  bool all_lost = n.kind == NodeKind::Expanded;
  for (const Edge* e = tree.edges(n); e != tree.edges(n) + n.edge_count; ++e) {
    const Proof proof = e->child == kNoNode ? Proof() : tree[e->child].proof;
    if (proof.is_loss()) shortest_win = std::min(shortest_win, proof.plies() + 1);
    if (proof.is_win())
      longest_loss = std::max(longest_loss, proof.plies() + 1);
    else
      all_lost = false;
  }
  const Proof before = n.proof;
  if (shortest_win < 1 << 14)
    n.proof = Proof::win(shortest_win);
  else if (all_lost)
    n.proof = Proof::loss(longest_loss);
  return n.proof != before;
}

}  // namespace tahl::search
