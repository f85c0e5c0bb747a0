#pragma once

#include <cstdint>
#include <vector>

#include "chess/types.h"

namespace tahl::search {

// What is proven of a node, seen by its side to move: a win in so many plies, a loss in so many, or
// nothing yet.
class Proof {
 public:
  constexpr Proof() = default;
  static constexpr Proof win(int plies) { return Proof(plies + 1); }
  static constexpr Proof loss(int plies) { return Proof(-plies - 1); }
  constexpr bool is_win() const { return code_ > 0; }
  constexpr bool is_loss() const { return code_ < 0; }
  constexpr explicit operator bool() const { return code_ != 0; }
  constexpr int plies() const { return (code_ > 0 ? code_ : -code_) - 1; }
  constexpr bool operator==(const Proof&) const = default;

 private:
  constexpr explicit Proof(int code) : code_(static_cast<std::int16_t>(code)) {}
  std::int16_t code_ = 0;
};

inline constexpr std::uint32_t kNoNode = 0xffffffff;

enum class NodeKind : std::uint8_t {
  Fresh,     // not evaluated
  Expanded,  // evaluated, has edges
  Leaf,      // never has edges: the game is over there, or a mate in one stands on the board
};

struct Node {
  double value_sum = 0;  // of the visits, for the side to move
  std::uint32_t visits = 0;
  std::uint32_t edges = 0;  // index of the first
  std::uint16_t edge_count = 0;
  std::uint16_t in_flight = 0;  // descents through it whose value is not known yet
  Proof proof;
  NodeKind kind = NodeKind::Fresh;
  bool is_repetition = false;  // a leaf that is a draw only because of the path to it

  double value() const { return visits == 0 ? 0 : value_sum / visits; }
};

struct Edge {
  std::uint32_t child = kNoNode;
  float prior = 0;
  Move move;
};

// Nodes and edges in two arrays that never grow beyond what was set aside. A node's edges lie
// together, the likeliest first. Children come after their parents. Indices hold until keep_only()
// or clear().
class Tree {
 public:
  explicit Tree(int megabytes);

  bool empty() const { return nodes_.empty(); }
  std::size_t size() const { return nodes_.size(); }
  // False if there may be no room for another node with its edges.
  bool has_room(std::size_t nodes) const {
    return nodes_.size() + nodes <= nodes_.capacity() &&
           edges_.size() + nodes * 256 <= edges_.capacity();
  }
  Node& operator[](std::uint32_t i) { return nodes_[i]; }
  const Node& operator[](std::uint32_t i) const { return nodes_[i]; }
  Edge* edges(const Node& n) { return edges_.data() + n.edges; }
  const Edge* edges(const Node& n) const { return edges_.data() + n.edges; }

  // Preconditions: has_room().
  std::uint32_t add_node();
  // The node's edges; priors need not be sorted.
  void expand(std::uint32_t node, const MoveList& moves, const std::vector<float>& priors);

  void clear();
  // Drops all but the subtree of `root`, which becomes node 0. Repetitions in it become fresh
  // nodes, as what made them draws may lie outside it now.
  void keep_only(std::uint32_t root);

 private:
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

// Draws from the proofs of the children what follows for `node`. True if that is new.
bool update_proof(Tree& tree, std::uint32_t node);

}  // namespace tahl::search
