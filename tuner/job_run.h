// One request on its way through a session.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kiln/tuner/laboratory.h"
#include "kiln/tuner/search.h"
#include "kiln/tuner/session.h"
#include "kiln/tuner/timing.h"

namespace kiln::tuner {

/// A variant between the search and its finished trial.
struct Specimen {
  SpecimenId id = 0;
  Trial draft;  ///< What is known of it so far.
  Program program;
  int compiles = 1;  ///< Attempts so far.
};

struct JobRun {
  JobRun(const Job& tuned, const TimingOptions& timing, bool deterministic_time)
      : job(tuned), race(timing, deterministic_time) {
    result.request = job.request;
    result.count = job.count;
  }

  Job job;
  JobResult result;
  std::unique_ptr<Search> search;  ///< Null until candidates are known.
  std::optional<Choice> heuristic;

  enum class Trusted { not_submitted, compiling, compiled };
  Trusted trusted_state = Trusted::not_submitted;
  std::optional<Specimen> trusted;  ///< Of the trusted algorithm, where the check needs it.
  bool begun = false;               ///< The laboratory works on this request.

  std::map<SpecimenId, Specimen> compiling;
  std::deque<Specimen> ready;    ///< Compiled, not yet checked.
  std::vector<Specimen> racing;  ///< Passed the check; parallel to the race's candidates.
  std::vector<bool> finished;    ///< Parallel to racing: the trial is out.
  Race race;

  bool prepared() const { return search != nullptr || result.status == JobStatus::failed; }
  size_t held() const { return compiling.size() + ready.size(); }
};

}  // namespace kiln::tuner
