#include "nn/evaluator_pool.h"

#include "nn/evaluator_cache.h"

namespace tahl::nn {

Expected<std::unique_ptr<Evaluator>> EvaluatorPool::take(const std::string& net,
                                                         const NetworkOptions& options,
                                                         int cache_megabytes) {
  const std::lock_guard lock(mutex_);
  const std::string kind =
      fmt::format("{} {} {}", to_string(options.precision), options.threads, net);
  std::unique_ptr<Evaluator>& loaded = nets_[kind];
  if (!loaded) {
    Expected<std::unique_ptr<Evaluator>> evaluator =
        net == "uniform" ? uniform_evaluator() : load_evaluator(net, options);
    if (!evaluator) return evaluator;
    loaded = *std::move(evaluator);
  }
  if (cache_megabytes <= 0) return loaded->clone();
  std::unique_ptr<Evaluator>& cached = cached_[fmt::format("{} {}", cache_megabytes, kind)];
  if (!cached)
    cached = with_cache(loaded->clone(), static_cast<std::size_t>(cache_megabytes) << 20);
  return cached->clone();
}

}  // namespace tahl::nn
