#include "nn/evaluator_cache.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <vector>

namespace tahl::nn {
namespace {

// Two hashes at once. A step is a bijection of the state for a given word and of the word for a
// given state, so nothing is lost on the way; constants of splitmix64 and murmur3's finaliser.
class Hasher {
 public:
  void add(std::uint64_t word) {
    a_ = (a_ ^ word) * 0xbf58476d1ce4e5b9ull;
    a_ ^= a_ >> 29;
    b_ = (std::rotl(b_, 23) + word) * 0xff51afd7ed558ccdull;
    b_ ^= b_ >> 32;
  }
  EvaluationKey key() const { return {finish(a_), finish(b_)}; }

 private:
  static std::uint64_t finish(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t a_ = 0x9e3779b97f4a7c15ull, b_ = 0xc4ceb9fe1a85ec53ull;
};

void add_position(Hasher& hasher, const Position& p) {
  for (const Bitboard b : p.planes()) hasher.add(b);
  std::uint64_t rest = static_cast<std::uint64_t>(p.en_passant_square());
  for (const Color c : {Color::White, Color::Black})
    for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen})
      rest = rest << 8 | static_cast<std::uint64_t>(p.castling_rook(c, side));
  hasher.add(rest << 1 | static_cast<std::uint64_t>(index(p.side_to_move())));
  hasher.add(static_cast<std::uint64_t>(p.halfmove_clock()));
}

// Whether positions()[i] had been on the board before.
bool is_repeated(const std::vector<Position>& positions, std::size_t i) {
  const auto reach = static_cast<std::size_t>(std::max(0, positions[i].halfmove_clock()));
  for (std::size_t back = 2; back <= std::min(reach, i); back += 2)
    if (positions[i - back].same_as(positions[i])) return true;
  return false;
}

// A part of the table with a lock of its own: evaluations in slots, and their logits in a ring of
// floats that is written over from its start again and again. A slot whose logits are gone is free.
class Shard {
 public:
  // Preconditions: slots is a power of two and at least kWays, floats at least 512.
  void resize(std::size_t slots, std::size_t floats) {
    slots_.resize(slots);
    ring_.resize(floats);
  }

  bool find(const EvaluationKey& key, std::size_t moves, Evaluation& out) {
    const std::lock_guard lock(mutex_);
    for (const Slot& slot : bucket(key)) {
      if (slot.key != key || slot.moves != moves || !is_alive(slot)) continue;
      out.value = slot.value;
      out.draw = slot.draw;
      const float* logits = ring_.data() + slot.begin % ring_.size();
      out.logits.assign(logits, logits + moves);
      return true;
    }
    return false;
  }

  void store(const EvaluationKey& key, const Evaluation& e) {
    const std::lock_guard lock(mutex_);
    const std::span<Slot> slots = bucket(key);
    Slot* chosen = nullptr;
    for (Slot& slot : slots) {
      if (slot.key == key && is_alive(slot)) return;  // another thread was quicker
      if (!chosen || age(slot) > age(*chosen)) chosen = &slot;
    }
    const std::size_t at = written_ % ring_.size(), size = e.logits.size();
    if (at + size > ring_.size()) written_ += ring_.size() - at;  // logits lie in one piece
    *chosen = {key, written_, e.value, e.draw, static_cast<std::uint32_t>(size)};
    std::copy(e.logits.begin(), e.logits.end(), ring_.data() + written_ % ring_.size());
    written_ += size;
  }

  static constexpr std::size_t kWays = 4;
  struct Slot {
    EvaluationKey key;
    std::uint64_t begin = kNever;  // of the logits, in floats ever written
    float value = 0, draw = 0;
    std::uint32_t moves = 0;
  };

 private:
  static constexpr std::uint64_t kNever = ~0ull;

  std::span<Slot> bucket(const EvaluationKey& key) {
    return {slots_.data() + (key.place & (slots_.size() - kWays)), kWays};
  }
  std::uint64_t age(const Slot& slot) const {
    return slot.begin == kNever ? kNever : written_ - slot.begin;
  }
  bool is_alive(const Slot& slot) const { return age(slot) <= ring_.size(); }

  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<float> ring_;
  std::uint64_t written_ = 0;
};

class Cache {
 public:
  explicit Cache(std::size_t bytes) {
    // A position has 30 to 35 legal moves on average; a slot that is free costs more than one that
    // is missing.
    constexpr std::size_t kFloatsPerSlot = 32;
    constexpr std::size_t kEntry = sizeof(Shard::Slot) + kFloatsPerSlot * sizeof(float);
    const std::size_t share = bytes / kShards;
    const std::size_t slots = std::max(Shard::kWays, std::bit_floor(share / kEntry));
    const std::size_t used = slots * sizeof(Shard::Slot);
    const std::size_t floats = (share - std::min(share, used)) / sizeof(float);
    for (Shard& shard : shards_) shard.resize(slots, std::max<std::size_t>(512, floats));
  }

  Shard& shard(const EvaluationKey& key) { return shards_[key.place >> 60]; }

 private:
  static constexpr std::size_t kShards = 16;
  Shard shards_[kShards];
};

class CachedEvaluator : public Evaluator {
 public:
  CachedEvaluator(std::unique_ptr<Evaluator> evaluator, std::shared_ptr<Cache> cache)
      : evaluator_(std::move(evaluator)), cache_(std::move(cache)) {}

  std::vector<Evaluation> evaluate(std::span<const EvalRequest> batch) override {
    std::vector<Evaluation> evaluations(batch.size());
    missing_.clear();
    places_.clear();
    keys_.clear();
    const int positions = evaluator_->positions_read();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const EvaluationKey key = evaluation_key(*batch[i].game, *batch[i].legal, positions);
      const auto moves = static_cast<std::size_t>(batch[i].legal->size());
      if (cache_->shard(key).find(key, moves, evaluations[i])) continue;
      missing_.push_back(batch[i]);
      places_.push_back(i);
      keys_.push_back(key);
    }
    if (missing_.empty()) return evaluations;
    std::vector<Evaluation> found = evaluator_->evaluate(missing_);
    for (std::size_t k = 0; k < found.size(); ++k) {
      cache_->shard(keys_[k]).store(keys_[k], found[k]);
      evaluations[places_[k]] = std::move(found[k]);
    }
    return evaluations;
  }

  std::unique_ptr<Evaluator> clone() const override {
    return std::make_unique<CachedEvaluator>(evaluator_->clone(), cache_);
  }
  std::string name() const override { return evaluator_->name(); }
  int positions_read() const override { return evaluator_->positions_read(); }

 private:
  std::unique_ptr<Evaluator> evaluator_;
  std::shared_ptr<Cache> cache_;
  std::vector<EvalRequest> missing_;  // of the present batch, and where they belong
  std::vector<std::size_t> places_;
  std::vector<EvaluationKey> keys_;
};

}  // namespace

EvaluationKey evaluation_key(const Game& game, const MoveList& legal, int positions) {
  Hasher hasher;
  const std::vector<Position>& all = game.positions();
  const std::size_t count = std::min(all.size(), static_cast<std::size_t>(positions));
  hasher.add(count);
  for (std::size_t i = all.size() - count; i < all.size(); ++i) {
    add_position(hasher, all[i]);
    if (positions != Evaluator::kWholeGame) hasher.add(is_repeated(all, i));
  }
  std::uint64_t word = static_cast<std::uint64_t>(legal.size());
  int packed = 1;
  for (const Move m : legal) {
    word = word << 16 | m.bits();
    if (++packed % 4 == 0) {
      hasher.add(word);
      word = 0;
    }
  }
  hasher.add(word);
  return hasher.key();
}

std::unique_ptr<Evaluator> with_cache(std::unique_ptr<Evaluator> evaluator, std::size_t bytes) {
  return std::make_unique<CachedEvaluator>(std::move(evaluator), std::make_shared<Cache>(bytes));
}

}  // namespace tahl::nn
