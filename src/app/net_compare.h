#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "chess/error.h"
#include "chess/game.h"
#include "chess/movegen.h"
#include "learn/data_pack.h"
#include "nn/evaluator.h"

namespace tahl::app {

// A position to ask nets about, with its history, and what was played there, where that is known.
struct SamplePosition {
  Game game;
  std::optional<Move> played;
};

struct SampleOptions {
  std::size_t count = 10'000;  // as many, drawn evenly from all there are; fewer if there are fewer
  std::uint64_t seed = 1;
  learn::Split split = learn::Split::Val;  // of a folder of shards
};

// Draws positions from games (.pgn, .pgn.zst), training shards (a folder or a .tshard file) or a
// list of positions, one FEN or EPD a line. Positions without a legal move are left out. `progress`
// is given how many were seen. An error names file and line or game, or says that there are none.
Expected<std::vector<SamplePosition>> sample_positions(
    const std::filesystem::path& path, const SampleOptions& options, std::stop_token stop = {},
    const std::function<void(std::uint64_t)>& progress = {});

// How far a stated probability is what happens: ECE, Guo et al. 2017 (arxiv.org/abs/1706.04599),
// with 15 bins of equal width.
class Calibration {
 public:
  void add(double p, bool happened);
  std::uint64_t count() const;
  double expected_error() const;  // mean over all of |p - share that happened| within a bin
  double mean_p() const;
  double share() const;  // that happened

 private:
  static constexpr std::size_t kBins = 15;
  struct Bin {
    std::uint64_t count = 0, happened = 0;
    double p = 0;
  };
  std::array<Bin, kBins> bins_{};
};

// What two nets, A and B, say of the same positions.
class Agreement {
 public:
  // Evaluations of the same legal moves, at least one. `played` is the number of the move played.
  void add(const nn::Evaluation& a, const nn::Evaluation& b, std::optional<int> played);

  std::uint64_t positions() const { return positions_; }
  double top1() const { return mean(same_top1_); }
  double kl() const { return mean(kl_); }  // KL(A||B), nats, over moves for which both have a logit
  double largest_kl() const { return largest_kl_; }
  double value_rmse() const;
  double largest_value_difference() const { return largest_value_difference_; }
  std::uint64_t largest_value_position() const { return largest_value_position_; }  // from 0
  std::uint64_t moves_left_out() const { return moves_left_out_; }  // one has no logit for them
  // Of the likeliest move being played.
  const Calibration& calibration_a() const { return calibration_a_; }
  const Calibration& calibration_b() const { return calibration_b_; }

 private:
  double mean(double sum) const {
    return positions_ == 0 ? 0 : sum / static_cast<double>(positions_);
  }
  std::uint64_t positions_ = 0, moves_left_out_ = 0, largest_value_position_ = 0;
  double same_top1_ = 0, kl_ = 0, largest_kl_ = 0, value_squares_ = 0,
         largest_value_difference_ = 0;
  Calibration calibration_a_, calibration_b_;
};

// Stopped, it returns what there is so far. `progress` is given how many are done.
Agreement compare_nets(nn::Evaluator& a, nn::Evaluator& b,
                       const std::vector<SamplePosition>& positions, std::stop_token stop = {},
                       const std::function<void(std::size_t)>& progress = {});

}  // namespace tahl::app
