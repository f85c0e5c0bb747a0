#include "nn/evaluator_batching.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace tahl::nn {
namespace {

// What goes through the net together.
struct Pass {
  std::vector<EvalRequest> requests;
  int callers = 0;
  bool is_full = false;  // no one else may join
  bool is_done = false;
  std::vector<Evaluation> evaluations;
  std::exception_ptr error;
};

// What the clones share.
class Gatherer {
 public:
  Gatherer(std::unique_ptr<Evaluator> evaluator, const BatchingOptions& options)
      : options_(options), name_(evaluator->name()), positions_read_(evaluator->positions_read()) {
    options_.passes = std::max(1, options_.passes);
    options_.max_batch = std::max<std::size_t>(1, options_.max_batch);
    for (int i = 1; i < options_.passes; ++i) idle_.push_back(evaluator->clone());
    idle_.push_back(std::move(evaluator));
  }

  std::vector<Evaluation> evaluate(std::span<const EvalRequest> batch) {
    std::unique_lock lock(mutex_);
    note_caller();
    if (open_ && open_->requests.size() + batch.size() > options_.max_batch) close(open_);
    const bool leads = !open_;
    if (leads) open_ = std::make_shared<Pass>();
    const std::shared_ptr<Pass> pass = open_;
    const std::size_t first = pass->requests.size();
    pass->requests.insert(pass->requests.end(), batch.begin(), batch.end());
    ++pass->callers;
    if (pass->requests.size() >= options_.max_batch) close(pass);
    changed_.notify_all();
    if (leads) {
      run(pass, lock);
    } else {
      changed_.wait(lock, [&] { return pass->is_done; });
    }
    if (pass->error) std::rethrow_exception(pass->error);
    // Each takes its own part, so this needs no lock.
    lock.unlock();
    const auto from = pass->evaluations.begin() + static_cast<std::ptrdiff_t>(first);
    return {std::make_move_iterator(from),
            std::make_move_iterator(from + static_cast<std::ptrdiff_t>(batch.size()))};
  }

  const std::string& name() const { return name_; }
  int positions_read() const { return positions_read_; }

 private:
  void close(const std::shared_ptr<Pass>& pass) {
    pass->is_full = true;
    if (open_ == pass) open_.reset();
  }

  void note_caller() {
    const auto lately = static_cast<std::uint64_t>(2 * options_.passes);
    std::erase_if(callers_, [&](const Caller& c) { return c.last + lately < started_; });
    const auto me = std::find_if(callers_.begin(), callers_.end(), [](const Caller& c) {
      return c.thread == std::this_thread::get_id();
    });
    if (me == callers_.end()) {
      callers_.push_back({std::this_thread::get_id(), started_});
    } else {
      me->last = started_;
    }
  }

  // How many callers are worth waiting for: the threads that asked during the last passes, and so
  // may be about to ask again, shared among the passes that run at the same time. Threads, not
  // clones: one that plays a game for both sides has two, and asks one at a time.
  int expected() const {
    return (static_cast<int>(callers_.size()) + options_.passes - 1) / options_.passes;
  }

  // Precondition and postcondition: `lock` is held.
  void run(const std::shared_ptr<Pass>& pass, std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock, [&] { return !idle_.empty(); });
    std::unique_ptr<Evaluator> evaluator = std::move(idle_.back());
    idle_.pop_back();
    changed_.wait_for(lock, options_.wait,
                      [&] { return pass->is_full || pass->callers >= expected(); });
    close(pass);
    ++started_;
    lock.unlock();
    try {
      pass->evaluations = evaluator->evaluate(pass->requests);
    } catch (...) {
      pass->error = std::current_exception();
    }
    lock.lock();
    idle_.push_back(std::move(evaluator));
    pass->is_done = true;
    changed_.notify_all();
  }

  BatchingOptions options_;
  std::string name_;
  int positions_read_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Evaluator>> idle_;
  std::shared_ptr<Pass> open_;  // which may still be joined
  struct Caller {
    std::thread::id thread;
    std::uint64_t last = 0;  // when it asked last, counted in passes
  };
  std::vector<Caller> callers_;  // that asked lately
  std::uint64_t started_ = 0;    // passes
};

class BatchingEvaluator : public Evaluator {
 public:
  explicit BatchingEvaluator(std::shared_ptr<Gatherer> gatherer) : gatherer_(std::move(gatherer)) {}

  std::vector<Evaluation> evaluate(std::span<const EvalRequest> batch) override {
    if (batch.empty()) return {};
    return gatherer_->evaluate(batch);
  }
  std::unique_ptr<Evaluator> clone() const override {
    return std::make_unique<BatchingEvaluator>(gatherer_);
  }
  std::string name() const override { return gatherer_->name(); }
  int positions_read() const override { return gatherer_->positions_read(); }

 private:
  std::shared_ptr<Gatherer> gatherer_;
};

}  // namespace

std::unique_ptr<Evaluator> with_batching(std::unique_ptr<Evaluator> evaluator,
                                         const BatchingOptions& options) {
  return std::make_unique<BatchingEvaluator>(
      std::make_shared<Gatherer>(std::move(evaluator), options));
}

}  // namespace tahl::nn
