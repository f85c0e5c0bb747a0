#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chess/error.h"

namespace tahl::learn {

// One row of a run's curves.
struct TrainPoint {
  double step = 0, positions = 0, loss = 0, policy = 0, value = 0, top1 = 0, lr = 0,
         positions_per_second = 0;
};
struct ValPoint {
  double step = 0, positions = 0, top1 = 0, top3 = 0, nll = 0, value_mse = 0;
};

// What a run says of itself: RUN/log.jsonl, one object a line, and RUN/curves.svg.
class RunLog {
 public:
  std::vector<TrainPoint> train;
  std::vector<ValPoint> val;

  // Adds a line to the log; `json` is an object.
  static Expected<void> append(const std::filesystem::path& run, const std::string& json);
  // Both curves over positions: losses above, share of moves guessed below.
  Expected<void> draw(const std::filesystem::path& run) const;
};
std::string to_json(const TrainPoint& p);
std::string to_json(const ValPoint& p);

}  // namespace tahl::learn
