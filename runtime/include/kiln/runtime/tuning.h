// Tuning: joins a tuning session with the database that keeps its trials. Used by `kiln tune`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/generator/calibration.h"
#include "kiln/generator/catalogue.h"
#include "kiln/runtime/run_journal.h"
#include "kiln/tuner/laboratory.h"
#include "kiln/tuner/session.h"
#include "kiln/tuner/work_list.h"

namespace kiln {

/// One tuning run over a database. Every finished trial is stored at once; trials that the database already holds, made
/// with the same algorithm, source, driver and NVRTC, are not repeated. So a run that was killed is continued by
/// running the same again.
///
/// The parameters must outlive it. Not thread-safe but for stop().
class Tuning {
 public:
  /// Makes the device known to `database` and learns its quarantine. Predictions are drawn from the calibration of the
  /// device that `database` holds, unless `options` has one.
  Tuning(const Catalogue& catalogue, tuner::Laboratory& laboratory, cache::Database& database,
         tuner::SessionOptions options, std::function<void(const tuner::Progress&)> progress = {});

  /// Tunes all jobs; results in the order given. The best of a job is the best that the database now holds for it,
  /// also of earlier sessions that tried other candidates: it is what an application will get. Throws what the
  /// laboratory throws; everything finished until then is stored.
  std::vector<tuner::JobResult> run(const std::vector<tuner::Job>& jobs, const std::optional<RunLabel>& label = {});

  /// Tunes jobs of a list that it shares with others on equal devices, each in a thread of its own and over the same
  /// database: see tuner::Session::run(). The results of the list are of this run alone: consider_stored(). With a
  /// label the database also says, all the while, how far the run is.
  void run(tuner::WorkList& list, const std::optional<RunLabel>& label = {});

  /// Makes the best of a job the best that the database holds for it now.
  void consider_stored(tuner::JobResult& result) const;

  /// Makes run() return after the trial at work. Callable from any thread and from a signal handler.
  void stop() { session_.stop(); }

  /// The measured figures from which predictions are drawn; nothing if the device was not calibrated.
  const std::optional<Calibration>& calibration() const { return calibration_; }

  /// Trials of the last run() that came from the database instead of being measured.
  size_t reused() const { return reused_; }

 private:
  bool was_let_go(const tuner::Trial& trial);
  std::optional<tuner::Trial> known(const Request& request, const Choice& choice, const std::string& algorithm_digest,
                                    const std::string& source_digest);

  const Catalogue& catalogue_;
  cache::Database& database_;
  const tuner::Apparatus& apparatus_;
  std::string session_id_;
  std::string request_;  // whose stored trials are below
  struct StoredTrial {
    tuner::Trial trial;
    bool is_own = false;  // of a tuning session, not imported
  };
  std::vector<StoredTrial> stored_;
  size_t reused_ = 0;
  std::optional<Calibration> calibration_;
  RunJournal journal_;
  tuner::Session session_;
};

}  // namespace kiln
