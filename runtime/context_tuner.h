// ContextTuner: tuning that an application permits while it runs.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/winners.h"
#include "kiln/context.h"
#include "kiln/generator/catalogue.h"
#include "kiln/runtime/tuning.h"
#include "kiln/tuner/worker.h"

namespace kiln {

/// Runs tuning sessions in worker processes, one at a time: two would disturb each other's times. Every trial is stored
/// in the database at once and taken into the index of winners when its session ends. Each request is tuned once at
/// most.
///
/// A session that cannot be run (no device left for a worker, say) is announced, and nothing is tuned from then on. The
/// destructor ends a session as Tuning::stop().
class ContextTuner {
 public:
  struct Tools {
    const Catalogue& catalogue;
    cache::Database& database;
    tuner::WorkerPoolOptions workers;
    std::function<void(const std::string&)> announce;
    /// Told of every request of a session, after it: what the database knows of it now is to be used. Must not throw.
    std::function<void(const Request&)> learn;
    /// Told of a request that was tuned in the background, on the tuner's thread. Must not throw.
    std::function<void(const Request&)> tuned;
    /// Told of every request of a session, after it, with what is known then in the database. Must not throw.
    std::function<void(const Request&)> tell_others;
  };

  ContextTuner(const TuningPolicy& policy, Tools tools);
  ~ContextTuner();
  ContextTuner(const ContextTuner&) = delete;
  ContextTuner& operator=(const ContextTuner&) = delete;

  const TuningPolicy& policy() const { return policy_; }

  /// Tunes those of `requests` that were not tuned yet, as far as the budget goes, and returns. Waits for a session of
  /// another thread, unless all of them have had theirs.
  void tune_now(std::span<const Request> requests);
  /// Leaves the request to the background.
  void enqueue(const Request& request);
  /// Waits until nothing is left to be tuned in the background, the budget is spent, or the policy wants it to stop.
  void wait_until_idle();

 private:
  void work();
  bool run_session(const std::vector<tuner::Job>& jobs);
  bool set_running(Tuning* tuning);
  void give_up(const std::string& why);
  bool stop_wanted() const;
  bool is_over_for(std::span<const Request> requests);

  TuningPolicy policy_;
  Tools tools_;

  std::mutex session_;  // held while one runs
  double spent_ = 0;    // seconds; guarded by session_

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::set<std::string> seen_;   // keys
  std::set<std::string> tuned_;  // likewise, of those whose session by tune_now() has ended
  std::deque<Request> queue_;
  bool at_work_ = false;
  bool stopping_ = false;
  bool given_up_ = false;
  Tuning* running_ = nullptr;  // the session at work, in whichever thread

  std::thread thread_;  // in the background only
};

}  // namespace kiln
