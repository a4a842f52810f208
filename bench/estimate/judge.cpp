#include "judge.h"

#include <algorithm>
#include <cmath>

#include "kiln/tuner/search.h"
#include "statistics.h"

namespace kiln::bench {
namespace {

std::string joined(const std::string& algorithm, const std::string& config) {
  return algorithm + " " + config;
}

double time_of(const Times& times, const Choice& choice) {
  const auto found = times.find(name_of(choice));
  return found == times.end() ? no_time : found->second;
}

// Follows the search that `kiln tune` would make: another takes the place of one that is known to have no time.
void judge_search(EstimateRow& row, const Candidates& candidates, const Times& times) {
  const auto search = tuner::make_search({}, candidates.ranked, candidates.best_guess()->choice);
  while (const auto choice = search->next()) {
    const bool is_known = times.contains(name_of(*choice));
    if (!is_known) row.tried_have_times = false;
    row.tried_seconds = std::min(row.tried_seconds, time_of(times, *choice));
    search->observe(trial_of(*choice, is_known ? time_of(times, *choice) : 0));
  }
}

}  // namespace

std::string name_of(const Choice& choice) {
  return joined(choice.algorithm, choice.config.print());
}

tuner::Trial trial_of(const Choice& choice, double seconds) {
  tuner::Trial trial;
  trial.choice = choice;
  trial.outcome = seconds == no_time ? tuner::Outcome::spills : tuner::Outcome::timed;
  trial.seconds = seconds;
  return trial;
}

Times times_of(std::span<const cache::Record> records) {
  Times times;
  for (const cache::Record& record : records) {
    const bool ran = record.outcome == cache::outcome::timed || record.outcome == cache::outcome::rejected_early;
    if (ran && record.seconds > 0) times[joined(record.algorithm, record.config)] = record.seconds;
  }
  return times;
}

EstimateRow judge_estimates(const Candidates& candidates, const Times& times) {
  EstimateRow row;
  std::vector<Pair> pairs;
  for (const Candidate& candidate : candidates.ranked) {
    const double seconds = time_of(times, candidate.choice);
    if (seconds == no_time) continue;
    pairs.push_back({seconds, candidate.estimate.seconds});
    if (seconds < row.fastest_seconds) {
      row.fastest_seconds = seconds;
      row.fastest = candidate;
    }
    if (row.standard_seconds == no_time && !candidate.user_template) {
      row.standard_seconds = seconds;
      row.standard = candidate;
    }
  }
  if (row.standard_seconds == no_time) return {};
  row.timed = pairs.size();
  row.spearman = judge(pairs).spearman;
  row.standard_has_time = candidates.best_guess()->choice == row.standard.choice;
  judge_search(row, candidates, times);
  return row;
}

EstimateVerdict judge_estimates(const std::vector<EstimateRow>& rows) {
  EstimateVerdict verdict;
  verdict.worst_standard_share = 1;
  double standard = 0, tried = 0, rows_tried = 0;
  for (const EstimateRow& row : rows) {
    standard += std::log(row.standard_share());
    if (row.tried_seconds != no_time) {
      tried += std::log(row.tried_share());
      ++rows_tried;
    }
    verdict.worst_standard_share = std::min(verdict.worst_standard_share, row.standard_share());
    verdict.spearman += row.spearman / static_cast<double>(rows.size());
    if (!row.standard_has_time || !row.tried_have_times) ++verdict.marked;
  }
  verdict.standard_share = std::exp(standard / static_cast<double>(rows.size()));
  verdict.tried_share = rows_tried == 0 ? 0 : std::exp(tried / rows_tried);
  return verdict;
}

}  // namespace kiln::bench
