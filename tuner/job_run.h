// One request on its way through a session.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/tuner/laboratory.h"
#include "kiln/tuner/search.h"
#include "kiln/tuner/session.h"
#include "kiln/tuner/timing.h"
#include "kiln/tuner/work_list.h"

namespace kiln::tuner {

/// A variant between the search and its finished trial.
struct Specimen {
  SpecimenId id = 0;
  Trial draft;  ///< Trial as far as it is known.
  Programs programs;
  int compiles = 1;  ///< Attempts so far.
};

/// "conv_direct TILE=8", for people.
inline std::string name_of(const Specimen& specimen) {
  return specimen.draft.choice.algorithm + " " + specimen.draft.choice.config.print();
}

struct JobRun {
  JobRun(WorkList::Item taken, const TimingOptions& timing, bool deterministic_time)
      : item(std::move(taken)), race(timing, deterministic_time) {
    result.request = item.job.request;
    result.count = item.job.count;
  }

  WorkList::Item item;
  size_t number = 0;  ///< In the order of tuning, from 0.
  JobResult result;
  std::optional<Variants> variants;  ///< There from the assessment on.
  std::unique_ptr<Search> search;    ///< Null if nothing can serve the request.
  /// First choice to try: the default choice, or the best user template where nothing else serves. Nothing if nothing
  /// does.
  std::optional<Candidate> first;
  bool ended = false;  ///< Nothing more is done for it.

  enum class Trusted { not_submitted, compiling, compiled };
  Trusted trusted_state = Trusted::not_submitted;
  std::optional<Specimen> trusted;  ///< Specimen of the trusted algorithm, where the check needs it.

  size_t submitted = 0;              ///< Programs that were given to the compilers, but for the trusted one.
  size_t allowed = 0;                ///< The most of them until its next turn.
  size_t measured = 0;               ///< Trials that this session made.
  double spent = 0;                  ///< Seconds of its turns.
  double longest_check = 0;          ///< Seconds of the slowest check that passed.
  std::map<std::string, int> hangs;  ///< Trials that hung, by algorithm.

  std::map<SpecimenId, Specimen> compiling;
  std::deque<Specimen> ready;     ///< Compiled, not yet checked.
  std::deque<Specimen> spilling;  ///< Compiled, and left out because their registers spill; best estimates first.
  std::vector<Specimen> racing;   ///< Passed the check; parallel to the race's candidates.
  std::vector<bool> finished;     ///< Parallel to racing: the trial is out.
  Race race;

  Subject subject() const { return {item.job.request, result.stand_in}; }

  size_t held() const { return compiling.size() + ready.size(); }

  /// The trial of `first`; null before it was tried.
  const Trial* first_trial() const {
    const auto is_first = [&](const Trial& trial) { return first && trial.choice == first->choice; };
    const auto found = std::find_if(result.trials.begin(), result.trials.end(), is_first);
    return found == result.trials.end() ? nullptr : &*found;
  }
};

}  // namespace kiln::tuner
