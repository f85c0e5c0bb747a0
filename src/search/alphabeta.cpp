#include "search/alphabeta.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

#include "search/rules.h"
#include "search/see.h"
#include "search/static_eval.h"
#include "search/time_control.h"

namespace tahl::search {
namespace {

constexpr int kMaxPly = 128;
constexpr int kInfinity = kMateScore + 1;
constexpr int kLeastMate = kMateScore - kMaxPly;  // scores beyond are mates
std::size_t from_to(Move m) { return static_cast<std::size_t>(m.from() << 6 | m.to()); }
bool is_mate_score(int score) { return std::abs(score) >= kLeastMate; }

enum class Bound : std::uint8_t { None, Lower, Upper, Exact };

// Always replaced. A hit cuts only at its own depth, so that a transposition never makes a search
// deeper than asked.
class TranspositionTable {
 public:
  struct Entry {
    Key key = 0;
    Move move;
    std::int16_t score = 0;
    std::int8_t depth = 0;
    Bound bound = Bound::None;
  };
  explicit TranspositionTable(int megabytes)
      : size_(std::bit_floor(static_cast<std::size_t>(std::max(1, megabytes)) * (1 << 20) /
                             sizeof(Entry))) {
    clear();
  }
  Entry& operator[](Key key) { return entries_[key & (size_ - 1)]; }
  // Fresh zero pages, which the system gives out as they are touched: short searches stay cheap.
  void clear() {
    entries_.reset();
    entries_.reset(static_cast<Entry*>(std::calloc(size_, sizeof(Entry))));
    if (!entries_) throw std::bad_alloc();
  }

 private:
  struct Free {
    void operator()(Entry* p) const { std::free(p); }
  };
  std::size_t size_;
  std::unique_ptr<Entry[], Free> entries_;
};

struct RootMove {
  Move move;
  int score = -kInfinity;
  std::vector<Move> line;
};

struct Variation {
  Move moves[kMaxPly];
  int size = 0;
  void set(Move first, const Variation& rest) {
    moves[0] = first;
    size = std::min(rest.size, kMaxPly - 1) + 1;
    std::copy_n(rest.moves, size - 1, moves + 1);
  }
};

class AlphaBetaPlayer : public Player {
 public:
  explicit AlphaBetaPlayer(const AlphaBetaOptions& options)
      : options_(options), table_(options.hash_megabytes) {}

  Choice choose(const Game& game, const Limits& limits, std::stop_token stop,
                const Report& report) override;
  void new_game() override { table_.clear(); }
  std::string name() const override {
    return options_.depth ? fmt::format("minimax depth {}", *options_.depth) : "minimax";
  }

 private:
  // One iteration of the root for the line after those in roots_[0, first). False if it was
  // stopped.
  bool search_root(int depth, std::size_t first);
  int search(int depth, int ply, int alpha, int beta, Variation& line);
  int quiescence(const Position& position, int ply, int alpha, int beta);
  void order(MoveList& moves, Move from_table, int ply);
  bool must_stop();
  Info info(int depth, int multi_pv) const;

  AlphaBetaOptions options_;
  TranspositionTable table_;

  // Of the search in progress.
  Game game_;
  int root_ply_ = 0;
  std::vector<RootMove> roots_;
  std::stop_token stop_;
  SearchClock* clock_ = nullptr;
  std::int64_t node_limit_ = 0, nodes_ = 0;
  int deepest_ = 0;
  bool timed_ = false, stopped_ = false;
  std::array<std::array<Move, 2>, kMaxPly> killers_{};
  std::array<std::array<int, 4096>, 2>
      history_{};  // [side][from, to]: how much cutting a quiet move did
};

bool AlphaBetaPlayer::must_stop() {
  if (nodes_ >= node_limit_) stopped_ = true;
  if ((nodes_ & 511) == 0 && (stop_.stop_requested() || (timed_ && clock_->past_hard())))
    stopped_ = true;
  return stopped_;
}

// The table's move first, then captures by most valuable victim and least valuable attacker,
// killers, history.
void AlphaBetaPlayer::order(MoveList& moves, Move from_table, int ply) {
  const Position& p = game_.position();
  std::array<int, 256> score;
  const auto value = [&](Move m) {
    if (m == from_table) return 1 << 30;
    if (p.is_capture(m) || m.promotion() == PieceType::Queen) {
      const PieceType victim = m.is_en_passant() ? PieceType::Pawn
                               : m.is_castling() ? PieceType::None
                                                 : p.type_on(m.to());
      return (1 << 28) + 16 * (piece_value(victim) + (m.is_promotion() ? 900 : 0)) -
             index(p.type_on(m.from()));
    }
    const auto& killers = killers_[static_cast<std::size_t>(ply)];
    if (m == killers[0]) return (1 << 27) + 1;
    if (m == killers[1]) return 1 << 27;
    return history_[static_cast<std::size_t>(index(p.side_to_move()))][from_to(m)];
  };
  for (int i = 0; i < moves.size(); ++i) score[static_cast<std::size_t>(i)] = value(moves[i]);
  for (int i = 1; i < moves.size(); ++i) {  // insertion sort: stable, and short lists
    const Move m = moves[i];
    const int s = score[static_cast<std::size_t>(i)];
    int j = i;
    for (; j > 0 && score[static_cast<std::size_t>(j - 1)] < s; --j) {
      moves.begin()[j] = moves[j - 1];
      score[static_cast<std::size_t>(j)] = score[static_cast<std::size_t>(j - 1)];
    }
    moves.begin()[j] = m;
    score[static_cast<std::size_t>(j)] = s;
  }
}

int AlphaBetaPlayer::search(int depth, int ply, int alpha, int beta, Variation& line) {
  line.size = 0;
  if (must_stop()) return 0;
  const Position& position = game_.position();
  if (is_search_draw(game_, root_ply_) && !is_mate(position)) return 0;
  if (depth <= 0 || ply >= kMaxPly - 1) return quiescence(position, ply, alpha, beta);
  ++nodes_;
  deepest_ = std::max(deepest_, ply);

  const bool is_pv = beta - alpha > 1;
  TranspositionTable::Entry& entry = table_[position.key()];
  Move from_table;
  if (entry.bound != Bound::None && entry.key == position.key()) {
    from_table = entry.move;
    // Mates are stored as seen from the node.
    const int score = entry.score >= kLeastMate    ? entry.score - ply
                      : entry.score <= -kLeastMate ? entry.score + ply
                                                   : entry.score;
    const bool cuts = entry.bound == Bound::Exact ||
                      (entry.bound == Bound::Lower ? score >= beta : score <= alpha);
    // Near the fifty-move rule the key does not say enough.
    if (entry.depth == depth && !is_pv && cuts && position.halfmove_clock() < 80) return score;
  }

  MoveList moves = legal_moves(position);
  if (moves.empty()) return position.is_check() ? ply - kMateScore : 0;
  order(moves, from_table, ply);

  const Color us = position.side_to_move();
  const Key key = position.key();
  const int old_alpha = alpha;
  int best = -kInfinity;
  Move best_move;
  Variation rest;
  for (int i = 0; i < moves.size(); ++i) {
    const Move m = moves[i];
    const bool quiet = !game_.position().is_capture(m) && !m.is_promotion();
    game_.play(m);
    int score;
    if (i == 0) {
      score = -search(depth - 1, ply + 1, -beta, -alpha, rest);
    } else {  // principal variation search: first only show that it is no better
      score = -search(depth - 1, ply + 1, -alpha - 1, -alpha, rest);
      if (score > alpha && score < beta) score = -search(depth - 1, ply + 1, -beta, -alpha, rest);
    }
    game_.undo();
    if (stopped_) return 0;
    if (score > best) {
      best = score;
      best_move = m;
      if (score > alpha) {
        alpha = score;
        line.set(m, rest);
      }
    }
    if (alpha >= beta) {
      if (quiet) {
        auto& killers = killers_[static_cast<std::size_t>(ply)];
        if (killers[0] != m) killers = {m, killers[0]};
        int& h = history_[static_cast<std::size_t>(index(us))][from_to(m)];
        h = std::min(h + depth * depth, 1 << 26);
      }
      break;
    }
  }
  const int stored = best >= kLeastMate ? best + ply : best <= -kLeastMate ? best - ply : best;
  const Bound bound = best >= beta ? Bound::Lower : best > old_alpha ? Bound::Exact : Bound::Upper;
  table_[key] = {key, best_move, static_cast<std::int16_t>(stored), static_cast<std::int8_t>(depth),
                 bound};
  return best;
}

int AlphaBetaPlayer::quiescence(const Position& position, int ply, int alpha, int beta) {
  ++nodes_;
  deepest_ = std::max(deepest_, ply);
  if (must_stop()) return 0;
  const bool in_check = position.is_check();
  int best = -kInfinity;
  if (!in_check) {
    best = stand_pat(position);
    if (best >= beta) return best;
    alpha = std::max(alpha, best);
  }
  if (ply >= kMaxPly - 1) return in_check ? 0 : best;
  MoveList moves;
  quiescence_moves(position, moves);
  if (in_check && moves.empty()) return ply - kMateScore;
  for (const Move m : moves) {
    Position next = position;
    next.make(m);
    const int score = -quiescence(next, ply + 1, -beta, -alpha);
    if (stopped_) return 0;
    best = std::max(best, score);
    alpha = std::max(alpha, score);
    if (alpha >= beta) break;
  }
  return best;
}

bool AlphaBetaPlayer::search_root(int depth, std::size_t first) {
  int alpha = -kInfinity;
  for (std::size_t i = first; i < roots_.size(); ++i) {
    RootMove& root = roots_[i];
    Variation rest;
    game_.play(root.move);
    int score;
    if (i == first) {
      score = -search(depth - 1, 1, -kInfinity, kInfinity, rest);
    } else {
      score = -search(depth - 1, 1, -alpha - 1, -alpha, rest);
      if (score > alpha && !stopped_) score = -search(depth - 1, 1, -kInfinity, -alpha, rest);
    }
    game_.undo();
    if (stopped_) break;
    if (i == first || score > alpha) {
      alpha = score;
      root.score = score;
      root.line.assign(1, root.move);
      root.line.insert(root.line.end(), rest.moves, rest.moves + rest.size);
      // The best so far leads, the others keep their order; so a stopped iteration leaves a usable
      // one.
      std::rotate(roots_.begin() + static_cast<std::ptrdiff_t>(first),
                  roots_.begin() + static_cast<std::ptrdiff_t>(i),
                  roots_.begin() + static_cast<std::ptrdiff_t>(i + 1));
    }
  }
  return !stopped_;
}

Info AlphaBetaPlayer::info(int depth, int multi_pv) const {
  Info info;
  info.depth = depth;
  info.seldepth = std::max(depth, deepest_);
  info.nodes = nodes_;
  info.time = clock_->elapsed();
  const auto count = std::min(roots_.size(), static_cast<std::size_t>(std::max(1, multi_pv)));
  for (std::size_t i = 0; i < count; ++i) {
    const RootMove& root = roots_[i];
    Line line;
    line.moves = root.line.empty() ? std::vector<Move>{root.move} : root.line;
    if (root.score == -kInfinity) {
      if (i > 0) break;  // stopped before this line was searched
    } else if (is_mate_score(root.score)) {
      const int plies = kMateScore - std::abs(root.score);
      line.mate_in = root.score > 0 ? (plies + 1) / 2 : -(plies / 2);
      line.value = root.score > 0 ? 1 : -1;
    } else {
      line.centipawns = root.score;
      line.value = expected_result(root.score);
    }
    line.p = i == 0 ? 1 : 0;
    info.lines.push_back(std::move(line));
  }
  return info;
}

Choice AlphaBetaPlayer::choose(const Game& game, const Limits& limits, std::stop_token stop,
                               const Report& report) {
  Limits capped = limits;
  if (options_.movetime)
    capped.movetime = std::min(*options_.movetime, limits.movetime.value_or(*options_.movetime));
  SearchClock clock(capped, game.position().side_to_move());
  clock_ = &clock;
  stop_ = stop;
  game_ = game;
  root_ply_ = game.ply();
  nodes_ = 0;
  deepest_ = 0;
  stopped_ = false;
  for (auto& k : killers_) k = {};
  for (auto& side : history_) side.fill(0);
  constexpr auto kNoLimit = std::numeric_limits<std::int64_t>::max();
  node_limit_ = std::max<std::int64_t>(
      1, std::min(limits.nodes.value_or(kNoLimit), options_.nodes.value_or(kNoLimit)));
  int depth_limit = kMaxDepth;
  if (limits.depth && !limits.infinite) depth_limit = std::clamp(*limits.depth, 1, depth_limit);
  if (options_.depth) depth_limit = std::clamp(*options_.depth, 1, depth_limit);
  if (limits.mate) depth_limit = std::min(depth_limit, 2 * std::clamp(*limits.mate, 1, 50) - 1);

  const MoveList legal = legal_moves(game_.position());
  MoveList candidates;
  for (const Move m : legal)
    if (limits.search_moves.empty() ||
        std::count(limits.search_moves.begin(), limits.search_moves.end(), m))
      candidates.push_back(m);
  if (candidates.empty()) candidates = legal;
  order(candidates,
        table_[game_.position().key()].key == game_.position().key()
            ? table_[game_.position().key()].move
            : Move{},
        0);
  roots_.clear();
  for (const Move m : candidates) roots_.push_back({m, -kInfinity, {}});

  Choice choice;
  const auto multi_pv =
      std::min(roots_.size(), static_cast<std::size_t>(std::max(1, limits.multi_pv)));
  Info last;
  for (int depth = 1; depth <= depth_limit && !roots_.empty(); ++depth) {
    timed_ = depth > 1;  // one ply is always finished, unless told to stop
    std::vector<RootMove> before = roots_;
    bool finished = true;
    for (std::size_t k = 0; k < multi_pv && finished; ++k) finished = search_root(depth, k);
    if (!finished && multi_pv > 1 && depth > 1) roots_ = std::move(before);  // lines of one depth
    if (finished || depth == 1 || multi_pv == 1) {
      // With a line at a time, later ones can come out better by a hair of the table; show them in
      // order.
      std::stable_sort(roots_.begin(), roots_.begin() + static_cast<std::ptrdiff_t>(multi_pv),
                       [](const RootMove& a, const RootMove& b) { return a.score > b.score; });
      last = info(depth, static_cast<int>(multi_pv));
      if (report) report(last);
    }
    if (!finished) break;
    // A mate within the depth searched is a shortest one, and nothing deeper changes it.
    const bool settled =
        std::all_of(roots_.begin(), roots_.begin() + static_cast<std::ptrdiff_t>(multi_pv),
                    [&](const RootMove& r) {
                      return is_mate_score(r.score) && kMateScore - std::abs(r.score) <= depth;
                    });
    if (settled) break;
    if (!clock.must_hold() && clock.past_target()) break;
    if (limits.time[static_cast<std::size_t>(index(game_.position().side_to_move()))] &&
        !limits.infinite && !limits.ponder && legal.size() == 1)
      break;
  }
  clock.hold(stop);
  last.time = clock.elapsed();
  last.nodes = nodes_;
  if (!roots_.empty()) {
    choice.move = roots_[0].move;
    if (roots_[0].line.size() > 1) choice.ponder = roots_[0].line[1];
  }
  for (const Move m : legal) choice.policy.emplace_back(m, m == choice.move ? 1. : 0.);
  choice.info = std::move(last);
  if (!roots_.empty() && choice.info.lines.empty()) choice.info = info(0, 1);
  clock_ = nullptr;
  return choice;
}

}  // namespace

void quiescence_moves(const Position& p, MoveList& out) {
  out.clear();
  MoveList moves;
  legal_moves(p, moves);
  if (p.is_check()) {
    for (const Move m : moves) out.push_back(m);
    return;
  }
  std::array<int, 256> score;
  for (const Move m : moves) {
    const bool queens = m.promotion() == PieceType::Queen;
    if (!queens && (!p.is_capture(m) || m.is_promotion())) continue;
    const int victim =
        m.is_en_passant() ? piece_value(PieceType::Pawn) : piece_value(p.type_on(m.to()));
    const PieceType mover = p.type_on(m.from());
    // Taking something dearer with something cheaper never loses.
    if ((queens || victim < piece_value(mover) || mover == PieceType::King) &&
        static_exchange(p, m) < 0)
      continue;
    const int s = 16 * (victim + (queens ? 900 : 0)) - index(mover);
    int j = out.size();
    out.push_back(m);
    for (; j > 0 && score[static_cast<std::size_t>(j - 1)] < s; --j) {
      out.begin()[j] = out[j - 1];
      score[static_cast<std::size_t>(j)] = score[static_cast<std::size_t>(j - 1)];
    }
    out.begin()[j] = m;
    score[static_cast<std::size_t>(j)] = s;
  }
}

int stand_pat(const Position& p) {
  if (has_insufficient_material(p)) return 0;
  const Color us = p.side_to_move();
  const bool only_pawns =
      p.pieces(us) == (p.pieces(us, PieceType::King) | p.pieces(us, PieceType::Pawn));
  if (only_pawns && !has_legal_move(p)) return 0;
  return static_eval(p);
}

std::unique_ptr<Player> alphabeta_player(const AlphaBetaOptions& options) {
  return std::make_unique<AlphaBetaPlayer>(options);
}

}  // namespace tahl::search
