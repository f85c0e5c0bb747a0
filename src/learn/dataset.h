#pragma once

#include <torch/types.h>

#include <deque>
#include <filesystem>
#include <future>
#include <memory>
#include <vector>

#include "chess/error.h"
#include "learn/data_pack.h"
#include "nn/encoding.h"
#include "nn/policy_map.h"
#include "nn/sample.h"

namespace tahl::learn {

// A random order of 0..n-1 without a table: a bijection of the integers below the next power of two
// (multiplications by odd numbers and shifted xors, keyed by the seed), applied until the result is
// below n. At most two tries on average.
class Permutation {
 public:
  // Precondition: n > 0.
  Permutation(std::uint64_t n, std::uint64_t seed);
  std::uint64_t operator()(std::uint64_t i) const;  // precondition: i < n

 private:
  std::uint64_t n_, mask_;
  int shift_;
  std::array<std::uint64_t, 8> keys_;
};

// One position to learn from.
struct Sample {
  nn::PackedPlanes planes;
  std::vector<nn::PolicyTerms> moves;  // the legal moves that the head can express
  int target = 0;   // the one played: an under-promotion that it cannot counts as the queen's
  float value = 0;  // the result for the side to move: -1, 0, 1
};

// Every position of a split in memory, at about a byte each.
class Dataset {
 public:
  static Expected<Dataset> load(const std::filesystem::path& folder, Split split);

  std::uint64_t positions() const { return first_.back(); }
  std::uint64_t games() const { return games_.size(); }
  std::uint64_t hash() const { return hash_; }  // names the contents
  const std::string& name() const { return name_; }

  // Replays the game as far as needed. Thread-safe. An error if the game is no legal one.
  Expected<Sample> sample(std::uint64_t index, nn::PolicyHead head) const;
  // All positions of a game at once.
  Expected<std::vector<Sample>> game_samples(std::uint64_t game, nn::PolicyHead head) const;

 private:
  struct GameRef {
    std::uint32_t shard, game;
  };
  template <class F>
  std::optional<Error> replay(std::uint64_t game, std::size_t plies, F visit) const;

  std::vector<nn::Shard> shards_;
  std::vector<GameRef> games_;
  std::vector<std::uint64_t> first_{0};  // [i] positions before game i; one more than games
  std::uint64_t hash_ = 0;
  std::string name_;
};

// `n` positions as tensors; L the most moves of one of them, T the most terms of a move.
struct Batch {
  torch::Tensor planes;  // [n][19][8][8] float
  torch::Tensor terms;   // [n][L * T] int64, outputs of the policy head
  torch::Tensor signs;   // [n][L][T] float, 0 where there is no term
  torch::Tensor absent;  // [n][L] bool, true where there is no move
  torch::Tensor target;  // [n] int64, the move played
  torch::Tensor value;   // [n] float
  std::int64_t size() const { return planes.size(0); }
};
Batch make_batch(std::span<const Sample> samples, nn::PolicyHead head);
Batch to_device(const Batch& batch, torch::Device device);

struct LoaderOptions {
  nn::PolicyHead head = nn::PolicyHead::Planes12;
  std::int64_t batch = 512;
  std::uint64_t seed = 1;
  int prefetch = 2;  // batches that are made at once, each by a thread
};

// An endless sequence of batches: all positions in a random order, then all in another. Sample
// number i is a function of the seed and i alone, so a loader that starts where another stopped
// continues it exactly. Batches are made ahead.
class Loader {
 public:
  // `first` is the number of samples that were already taken. `data` must outlive the loader.
  Loader(const Dataset& data, const LoaderOptions& options, std::uint64_t first = 0);
  Expected<Batch> next();
  std::uint64_t taken() const { return taken_; }

 private:
  void start();
  const Dataset& data_;
  LoaderOptions options_;
  std::uint64_t taken_, started_;
  std::deque<std::future<Expected<Batch>>> pending_;
};

}  // namespace tahl::learn
