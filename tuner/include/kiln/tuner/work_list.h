// WorkList: the jobs that sessions on equal devices share.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/tuner/session.h"

namespace kiln::tuner {

/// A job, and what tuning it is expected to take.
struct Work {
  Job job;
  double seconds = 0;
  size_t planned = 0;  ///< Candidates of it, for counts() before a session has it.
};

/// Hands jobs out to the sessions that share them, the longest first, and takes their results. Layers that a session
/// leaves because it failed go to the others. Thread-safe.
class WorkList {
 public:
  /// For so many sessions: each takes jobs until it leaves.
  WorkList(std::vector<Work> work, size_t sessions);
  /// For one session, in the order given.
  explicit WorkList(const std::vector<Job>& jobs);
  WorkList(const WorkList&) = delete;
  WorkList& operator=(const WorkList&) = delete;

  struct Item {
    size_t index = 0;   ///< In the order given.
    size_t number = 0;  ///< In the order of handing out.
    Job job;
  };

  /// The next job that nobody has; all of them if only one session is left. Empty if there is none at the moment.
  std::vector<Item> take();
  /// All jobs that nobody has.
  std::vector<Item> take_rest();
  /// Waits until there is something to take, at most `seconds`. False once nothing will come any more. For a session
  /// that has delivered what it took.
  bool wait(double seconds);
  void deliver(const Item& item, JobResult result);
  /// A session is over. `unfinished`: what it took and has not delivered.
  void leave(const std::vector<Item>& unfinished);

  /// All jobs, in the order given.
  std::vector<Job> jobs() const;
  size_t size() const { return results_.size(); }
  /// How many jobs nobody has.
  size_t waiting() const;

  /// How far a job is, as the session says that has it.
  struct Count {
    size_t index = 0;               ///< Item::index
    size_t tried = 0, planned = 0;  ///< Candidates.
  };
  void note(std::span<const Count> counts);
  /// The sums over all jobs, whoever has them.
  Count counts() const;

  /// In the order given, once all sessions have left. A job without a result has failed, because of `why`.
  std::vector<JobResult> take_results(const std::string& why = {});

 private:
  std::vector<Item> take_at_most(size_t count);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;    // by number; all of them
  std::vector<size_t> queue_;  // numbers of those that nobody has, the next one last
  std::vector<std::optional<JobResult>> results_;
  std::vector<Count> counts_;  // by index
  size_t sessions_;
  size_t held_ = 0;  // taken and not delivered
};

}  // namespace kiln::tuner
