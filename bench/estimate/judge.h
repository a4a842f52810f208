// How well estimates choose among variants whose times are known: of one request, and of several.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kiln/cache/record.h"
#include "kiln/generator/catalogue.h"
#include "kiln/tuner/trial.h"

namespace kiln::bench {

constexpr double no_time = std::numeric_limits<double>::infinity();

/// Seconds, by name_of() what was timed; no_time for what will have none, because its registers spill or the clock
/// refuses it.
using Times = std::map<std::string, double>;

/// Algorithm and parameters: records of other versions of an algorithm count too, because editing an estimate makes
/// another version.
std::string name_of(const Choice& choice);

/// A trial of `choice` that took so long, or had no time.
tuner::Trial trial_of(const Choice& choice, double seconds);

/// Times of variants that ran and gave the right result: predictions are estimates themselves.
Times times_of(std::span<const cache::Record> records);

/// One request.
struct EstimateRow {
  size_t timed = 0;  ///< Variants that have a time; without any, there is nothing else.
  Candidate fastest, standard;
  /// Seconds of the fastest that has a time, of the default, and of the best of those that a search tries.
  double fastest_seconds = no_time, standard_seconds = no_time, tried_seconds = no_time;
  /// Where the default has no time, the next best estimate that has one stands for it.
  bool standard_has_time = true, tried_have_times = true;
  double spearman = 0;  ///< Rank correlation of the estimates and times of all that have one.

  double standard_share() const { return fastest_seconds / standard_seconds; }  ///< Share of the fastest one's speed.
  double tried_share() const { return fastest_seconds / tried_seconds; }        ///< 0 if none of them has a time.
};

EstimateRow judge_estimates(const Candidates& candidates, const Times& times);

/// Several requests, each of which has a time. Shares are geometric means; that of the search leaves out requests of
/// which nothing that would be tried has one.
struct EstimateVerdict {
  double standard_share = 0, worst_standard_share = 0, tried_share = 0, spearman = 0;
  size_t marked = 0;  ///< Rows in which a variant that would be chosen has no time.
};

EstimateVerdict judge_estimates(const std::vector<EstimateRow>& rows);

}  // namespace kiln::bench
