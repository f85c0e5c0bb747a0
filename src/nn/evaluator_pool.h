#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "nn/evaluator.h"

namespace tahl::nn {

// Nets that several players use: each is read once, and those with a cache of the same size share
// it. For any number of threads.
class EvaluatorPool {
 public:
  // As load_evaluator(); "uniform" is uniform_evaluator(). Without megabytes there is no cache.
  // An evaluator may outlive the pool. A file is not looked at again while the pool lives.
  Expected<std::unique_ptr<Evaluator>> take(const std::string& net, const NetworkOptions& options,
                                            int cache_megabytes = 0);

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Evaluator>> nets_, cached_;  // only to be cloned
};

}  // namespace tahl::nn
