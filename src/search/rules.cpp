#include "search/rules.h"

#include <algorithm>

namespace tahl::search {
namespace {

// Finds a mate in exactly up to `moves`; `line` receives it.
class MateSearch {
 public:
  explicit MateSearch(const std::function<bool()>& give_up) : give_up_(give_up) {}

  bool attack(const Position& position, const MoveList& legal, int moves, std::vector<Move>& line) {
    if (const auto mate = find_mate_in_one(position, legal)) {
      line = {*mate};
      return true;
    }
    if (moves == 1) return false;
    for (const bool checks : {true, false}) {
      for (const Move m : legal) {
        Position next = position;
        next.make(m);
        if (next.is_check() != checks) continue;
        std::vector<Move> defence;
        if (defend(next, moves - 1, defence)) {
          line = {m};
          line.insert(line.end(), defence.begin(), defence.end());
          return true;
        }
        if (gave_up_) return false;
      }
    }
    return false;
  }

 private:
  // True if every move here runs into a mate in at most `moves`; stalemate is none.
  bool defend(const Position& position, int moves, std::vector<Move>& line) {
    if (give_up_ && (++polls_ & 255) == 0 && give_up_()) gave_up_ = true;
    if (gave_up_) return false;
    const MoveList legal = legal_moves(position);
    if (legal.empty() || has_insufficient_material(position)) return false;
    for (const Move m : legal) {
      Position next = position;
      next.make(m);
      std::vector<Move> attack_line;
      if (!attack(next, legal_moves(next), moves, attack_line)) return false;
      if (attack_line.size() + 1 > line.size()) {
        line = {m};
        line.insert(line.end(), attack_line.begin(), attack_line.end());
      }
    }
    return true;
  }

  const std::function<bool()>& give_up_;
  unsigned polls_ = 0;
  bool gave_up_ = false;
};

}  // namespace

bool is_search_draw(const Game& game, int root_ply) {
  const Position& now = game.position();
  if (now.halfmove_clock() >= 100 || has_insufficient_material(now)) return true;
  if (now.halfmove_clock() < 4) return false;
  const auto& positions = game.positions();
  const int last = game.ply();
  const int first = std::max(0, last - now.halfmove_clock());
  int count = 1;
  for (int i = last - 4; i >= first; i -= 2) {
    const Position& then = positions[static_cast<std::size_t>(i)];
    if (then.key() != now.key() || !then.same_as(now)) continue;
    if (i >= root_ply || ++count == 3) return true;
  }
  return false;
}

bool is_mate(const Position& position) { return position.is_check() && !has_legal_move(position); }

std::optional<Move> find_mate_in_one(const Position& position, const MoveList& legal) {
  for (const Move m : legal) {
    Position next = position;
    next.make(m);
    if (is_mate(next)) return m;
  }
  return std::nullopt;
}

std::vector<Move> find_mate(const Position& position, const MoveList& root_moves, int moves,
                            const std::function<bool()>& give_up) {
  MateSearch search(give_up);
  for (int n = 1; n <= moves; ++n) {
    std::vector<Move> line;
    if (search.attack(position, root_moves, n, line)) return line;
    if (give_up && give_up()) break;
  }
  return {};
}

}  // namespace tahl::search
