// RunJournal: keeps a tuning run's progress in its database, where others can see it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/tuner/session.h"

namespace kiln {

/// Names of a run in its database, for `kiln tune --status`.
struct RunLabel {
  std::string workload;  ///< The tuned requests, as the user named them.
  std::string part;      ///< "2/8"; empty: all of it.
};

/// How often a run says that it is at work, if nothing else is to be said. One that has said nothing for several times
/// as long was killed, or its machine is gone.
inline constexpr std::int64_t heartbeat_ms = 10'000;

/// Writes to `database` at most once a second, and nothing at all before begin(). Not thread-safe.
class RunJournal {
 public:
  /// `session`: of a session that `database` holds when begin() is called.
  RunJournal(cache::Database& database, std::string session) : database_(database), session_(std::move(session)) {}

  void begin(const RunLabel& label, const std::vector<tuner::Job>& jobs);
  void heard(const tuner::Progress& progress);
  /// There is nothing for the run to do but to wait for others.
  void idle(std::optional<double> seconds_left);
  void concluded(const tuner::JobResult& result);
  /// Writes what is left to be written.
  void end();

 private:
  void write_if_due();
  void write(std::int64_t now);

  cache::Database& database_;
  std::string session_;
  bool active_ = false;
  std::set<std::string> begun_;  // requests
  std::vector<cache::RunLayer> pending_;
  std::optional<double> seconds_left_;
  std::int64_t written_ms_ = 0;
};

}  // namespace kiln
