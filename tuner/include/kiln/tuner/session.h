// Session: tunes a list of requests within a budget. The one tuner behind the command line, the runtime and the tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generator/catalogue.h"
#include "kiln/tuner/laboratory.h"
#include "kiln/tuner/quarantine.h"
#include "kiln/tuner/search.h"
#include "kiln/tuner/timing.h"
#include "kiln/tuner/trial.h"

namespace kiln::tuner {

/// A request to tune, and how often its layer occurs in the model.
struct Job {
  Request request;
  int64_t count = 1;
};

struct SessionOptions {
  SearchOptions search{};
  TimingOptions timing{};
  double budget_seconds = std::numeric_limits<double>::infinity();  ///< Of the clock below, for the whole session.
  /// What the device was measured to reach: predictions are drawn from it, instead of from what is assumed of any.
  std::optional<Calibration> calibration{};
  /// Seconds on a monotonic clock; the system's steady clock if empty.
  std::function<double()> clock{};
};

/// Where the session stands; given to the progress callback after every trial and at the start of every request.
struct Progress {
  size_t job = 0;  ///< Number of the request at work in the order of tuning, from 0.
  size_t jobs = 0;
  std::string request;    ///< Its key.
  size_t candidates = 0;  ///< Finished of this request.
  size_t planned = 0;     ///< Candidates of this request, at most.
  double elapsed = 0;     ///< Seconds since the session started.
  /// Estimated seconds to go, at most what is left of the budget; nothing before the first trial.
  std::optional<double> remaining{};
  const Trial* last = nullptr;  ///< The trial that just finished; null at the start of a request.
  const Trial* best = nullptr;  ///< Best of this request so far; null if none has a time.
};

/// What a session tells, and whom it asks. Each may be empty. All are called on the thread of run().
struct SessionCallbacks {
  /// Takes every finished trial at once, but for quarantined ones: nothing was learnt. What it throws ends the session.
  std::function<void(const Trial&)> sink{};
  /// A trial of an earlier session that need not be repeated: same request, choice, digests and versions, with a
  /// conclusive outcome. It is not measured again and does not go to the sink.
  std::function<std::optional<Trial>(const Request&, const Choice&, const std::string& algorithm_digest,
                                     const std::string& source_digest)>
      known{};
  std::function<void(const Progress&)> progress{};
};

enum class JobStatus {
  finished,     ///< Every candidate of the search was tried.
  out_of_time,  ///< The budget ended first; what was measured counts.
  stopped,      ///< stop() was called first; what was measured counts.
  failed,       ///< Nothing could be tried; see JobResult::error.
};

struct JobResult {
  Request request;
  int64_t count = 1;
  JobStatus status = JobStatus::finished;
  std::string error;          ///< Why the job failed.
  std::vector<Trial> trials;  ///< In the order finished; trials known from earlier sessions included.
  std::optional<Trial> best;
  /// The trial of what is used where nothing was measured; nothing if it was not tried.
  std::optional<Trial> heuristic;
  double roofline_seconds = 0;
  std::vector<Refusal> refused;  ///< Algorithms of the operation that cannot serve the request, and why.
};

/// Tunes requests one after the other, compiling ahead while the device measures. Requests should be distinct.
///
/// Single use. Not thread-safe but for stop(). `catalogue` and `laboratory` must outlive it.
class Session {
 public:
  Session(const Catalogue& catalogue, Laboratory& laboratory, SessionOptions options, SessionCallbacks callbacks);

  /// What is known to fail; the session adds to it. Fill it from stored trials before run().
  Quarantine& quarantine() { return quarantine_; }

  /// Tunes all jobs in the order of expected time saved and returns their results in the order given.
  ///
  /// Each job may use an equal share of the time that is left when it starts. Throws what the laboratory and the sink
  /// throw; everything finished until then is in the sink.
  std::vector<JobResult> run(const std::vector<Job>& jobs);

  /// Makes run() return after the trial at work. Callable from any thread and from a signal handler.
  void stop() { stop_.store(true, std::memory_order_relaxed); }

 private:
  const Catalogue& catalogue_;
  Laboratory& laboratory_;
  SessionOptions options_;
  SessionCallbacks callbacks_;
  Quarantine quarantine_;
  std::atomic<bool> stop_{false};
};

/// The order in which to tune: by count times the distance of the best estimate from the roofline, largest first; ties
/// by key. Indices into `jobs`. Requests that no algorithm serves come last.
std::vector<size_t> tuning_order(const std::vector<Job>& jobs, const Catalogue& catalogue, const Apparatus& apparatus);

/// One of `count` equal parts of a plan.
struct Shard {
  uint64_t index = 0;  ///< From 0
  uint64_t count = 1;

  /// Parses `i/N` with 0 <= i < N, as index jobs number themselves. Throws Error(parse_error).
  static Shard parse(const std::string& text);
  /// Whether the request with this key belongs to this part: by a hash of the key that never changes, so that shards
  /// agree without talking.
  bool contains(const std::string& key) const;
};

}  // namespace kiln::tuner
