// A session over two quick algorithms in a laboratory that does as told, and what it hands out.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes.h"
#include "kiln/tuner/session.h"

namespace kiln::tuner {

inline const Failure crash{Outcome::crashed, "signal 11"};
inline const Failure hang{Outcome::timed_out, "exceeded the time limit"};
inline const Failure no_memory{Outcome::out_of_memory, "8 GiB"};

class SessionTest : public testing::Test {
 protected:
  SessionOptions options() {
    SessionOptions made;
    made.clock = laboratory.clock();
    return made;
  }

  std::vector<JobResult> run(const std::vector<Job>& jobs, SessionOptions how) {
    Session session(catalogue, laboratory, std::move(how), callbacks());
    for (const Trial& trial : learnt) session.quarantine().learn(trial);
    return session.run(jobs);
  }
  JobResult run_one(SessionOptions how) { return run({{fakes::toy_request(), 1}}, std::move(how)).front(); }
  JobResult run_one() { return run_one(options()); }

  SessionCallbacks callbacks() {
    return {.sink = [this](const Trial& trial) { sunk.push_back(trial); },
            .known = [this](const Request& request, const Choice& choice, const std::string& algorithm,
                            const std::string& source) -> std::optional<Trial> {
              for (const Trial& trial : stored) {
                if (trial.request == request.key() && trial.choice == choice && trial.algorithm_digest == algorithm &&
                    trial.source_digest == source) {
                  return trial;
                }
              }
              return std::nullopt;
            },
            .progress = [this](const Progress& now) { progress.push_back(now); }};
  }

  static Outcome outcome_of(const JobResult& result, const std::string& algorithm) {
    for (const Trial& trial : result.trials) {
      if (trial.choice.algorithm == algorithm) return trial.outcome;
    }
    ADD_FAILURE() << algorithm << " was not tried";
    return Outcome::refused;
  }

  // Rows of the request of each trial in the sink.
  std::vector<int> requests_sunk() const {
    std::vector<int> rows;
    for (const Trial& trial : sunk) {
      for (const int each : {1, 2, 3, 4}) {
        if (trial.request == fakes::toy_request(each).key()) rows.push_back(each);
      }
    }
    return rows;
  }

  fakes::FakeLaboratory laboratory;
  Catalogue catalogue = fakes::toy_catalogue({fakes::toy("first", {1}, 1e-3), fakes::toy("second", {1}, 2e-3)});
  std::vector<Trial> sunk, stored, learnt;
  std::vector<Progress> progress;
};

}  // namespace kiln::tuner
