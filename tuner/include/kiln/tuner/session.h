// Session: tunes a list of requests within a budget. The one tuner behind the command line, the runtime and the tests.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
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
  /// Budget by the clock below, for the whole session. The task at work when it ends is cut off if it takes more than
  /// two seconds longer.
  double budget_seconds = std::numeric_limits<double>::infinity();
  /// Rates that the device was measured to reach: predictions are drawn from them, instead of from what is assumed of
  /// any.
  std::optional<Calibration> calibration{};
  /// Seconds on a monotonic clock; the system's steady clock if empty.
  std::function<double()> clock{};
};

/// Where the session stands; given to the progress callback after every trial, at the start of every turn of a request,
/// and every second in between.
struct Progress {
  size_t job = 0;             ///< Number of the request at work in the order of tuning, from 0.
  size_t jobs = 0;            ///< Requests of the whole list, also those of other sessions.
  std::string request;        ///< Its key.
  size_t candidates = 0;      ///< Finished of this request.
  size_t planned = 0;         ///< Candidates of this request, if no more of them fail.
  size_t all_candidates = 0;  ///< Finished of the whole list, also by other sessions.
  size_t all_planned = 0;     ///< Candidates of the whole list, likewise.
  double elapsed = 0;         ///< Seconds since the session started.
  /// Estimated seconds to go until the whole list is done, at most what is left of the budget; nothing before the first
  /// trial.
  std::optional<double> remaining{};
  std::string waiting_for;      ///< The task at work, in words; empty between two.
  double waiting_seconds = 0;   ///< Since it began.
  const Trial* last = nullptr;  ///< The trial that just finished; null at the start of a request.
  const Trial* best = nullptr;  ///< Best of this request so far; null if none has a time.
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
  /// Choice where nothing was measured, with its prediction; nothing if nothing can serve the request.
  std::optional<Candidate> fallback;
  /// The trial of that; nothing if it was not tried.
  std::optional<Trial> heuristic;
  double roofline_seconds = 0;
  std::vector<Refusal> refused;  ///< Algorithms of the operation that cannot serve the request, and why.
  /// The smaller request whose results were checked in its stead: see Laboratory::stand_in().
  std::optional<Request> stand_in;
};

/// Functions through which a session reports and asks. Each may be empty. All are called on the thread of run().
struct SessionCallbacks {
  /// Takes every finished trial at once, but for quarantined ones: nothing was learnt. An exception of it ends the
  /// session.
  std::function<void(const Trial&)> sink{};
  /// A trial of an earlier session that need not be repeated: same request, choice, digests and versions, with a
  /// conclusive outcome. It is not measured again and does not go to the sink.
  std::function<std::optional<Trial>(const Request&, const Choice&, const std::string& algorithm_digest,
                                     const std::string& source_digest)>
      known{};
  std::function<void(const Progress&)> progress{};
  /// Takes the result of every job once nothing more is done for it.
  std::function<void(const JobResult&)> concluded{};
  /// Called every second while only other sessions of the list have something to do, with Progress::remaining.
  std::function<void(std::optional<double>)> idle{};
};

class WorkList;

/// Tunes requests, compiling ahead while the device measures. Requests should be distinct.
///
/// Single use. Not thread-safe but for stop(). `catalogue` and `laboratory` must outlive it.
class Session {
 public:
  Session(const Catalogue& catalogue, Laboratory& laboratory, SessionOptions options, SessionCallbacks callbacks);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Variants known to fail; the session adds to it. Fill it from stored trials before run().
  Quarantine& quarantine();

  /// Tunes all jobs and returns their results in the order given.
  ///
  /// Without a budget one after the other, the one from which most time may be saved first. With one, the default
  /// choice of each in that order, and then by turns whichever is worth most: see worth_of(). A job that has had n
  /// trials tries as many again in its turn. Throws what the laboratory and the sink throw; everything finished until
  /// then is in the sink.
  std::vector<JobResult> run(const std::vector<Job>& jobs);

  /// Tunes jobs of a list that sessions on equal devices share, each in a thread of its own, until the list has a
  /// result for every job. As above, but in the order of the list; with a budget, no job gets a second turn while
  /// there is one that no session has begun. If it throws, the other sessions get what it left.
  void run(WorkList& list);

  /// Makes run() return after the trial at work, which is cut off if it takes more than two seconds longer. Callable
  /// from any thread and from a signal handler.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// How many candidates of `request` a session plans to try; 0 if nothing serves it.
size_t planned_candidates(const Catalogue& catalogue, const Request& request, const Apparatus& apparatus,
                          const SearchOptions& search);

/// Gain to expect from one more trial of a job.
struct Prospect {
  int64_t count = 1;            ///< Occurrences of the layer in the model.
  double seconds = 0;           ///< Best known time of the layer: measured, or before that predicted.
  double roofline_seconds = 0;  ///< No time will be below it.
  size_t trials = 0;            ///< Made so far.
  double cost = 1;              ///< Seconds of tuning that one more will take.
};

/// Seconds of the model's time that one more trial is expected to save, for each second of tuning:
///
///     count * (seconds - roofline_seconds) / (trials + 1) / cost
///
/// 1 / (trials + 1) is the chance that the next trial is the best of all, were they drawn in random order. 0 where the
/// layer is at its roofline.
double worth_of(const Prospect& prospect);

}  // namespace kiln::tuner
