// Final output of `kiln tune`: a table, or JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "input.h"
#include "json.h"
#include "kiln/generator/calibration.h"
#include "kiln/tuner/laboratory.h"
#include "kiln/tuner/session.h"
#include "output.h"

namespace kiln::cli {

/// Modelled launches of a layer's best variant, from the clock of an emulated device.
struct ModelledLaunches {
  std::string bound;  ///< Bound of the longest, in few words. Empty where the clock tells nothing.
  std::string text;   ///< All that is told of each, in lines.
};

struct TuneReport {
  const tuner::Apparatus& apparatus;
  const std::vector<tuner::JobResult>& results;
  const std::vector<NotCovered>& not_covered;
  std::string database;  ///< Where the records are, in words.
  size_t reused = 0;     ///< Trials that were in the database before.
  std::string workload;  ///< The input as the user named it.
  std::string command;   ///< The command line that does the same again.
  std::string created;   ///< When the session ended, UTC.
  /// Figures from which predictions were drawn: as Tuning::calibration().
  std::optional<Calibration> calibration{};
  std::vector<std::string> devices{};        ///< Where several may share the layers: those that did, for --device.
  size_t first_layer = 1;                    ///< Number of its first layer on a page.
  std::vector<ModelledLaunches> launches{};  ///< Launches of each of `results`, for a page; or none.
  ModelNodes nodes{};                        ///< Nodes of the model that the layers come from.
};

std::string print_table(const TuneReport& report, const Output& output);
Json json_of(const TuneReport& report);

/// Whether every layer was tuned, as far as the budget went, and has a variant to use.
bool all_served(const std::vector<tuner::JobResult>& results);

// Parts shared by the table, JSON and the page.

/// "modelled" or "measured".
std::string_view kind_of_time(const tuner::Apparatus& apparatus);
/// "finished", "out of time", ...
std::string_view word(tuner::JobStatus status);
/// Whether the default choice was tried and has a time.
bool default_has_time(const tuner::JobResult& result);

/// Whether nothing of the layer was timed, so that it keeps the default choice, of which only an estimate is known.
bool keeps_default(const tuner::JobResult& result);
/// Seconds of that estimate, marked as one: `~12.3 us`.
std::string estimate_text(const tuner::JobResult& result);

/// Seconds of one run of a layer.
struct LayerTimes {
  double best = 0;         ///< With what tuning found; the default's estimate where nothing was timed.
  double heuristic = 0;    ///< With the default choice; `best` where that has no time, or is what is kept.
  bool estimated = false;  ///< Nothing was timed: both are the default's estimate.
  bool compared = false;   ///< `heuristic` is the default's own.
};
/// Nothing if there is nothing to use.
std::optional<LayerTimes> times_of(const tuner::JobResult& result);

/// Seconds with the layers' counts. A layer that keeps its default counts with the estimate; one that was tuned while
/// its default has no time (it is wrong, say) counts as no gain.
struct Totals {
  double best = 0, heuristic = 0, roofline = 0;
  size_t estimated = 0;        ///< Distinct layers that keep their default.
  size_t compared = 0;         ///< Distinct layers whose default has a time, or keeps serving.
  size_t without_default = 0;  ///< Distinct layers whose default has no time.
  size_t left_out = 0;         ///< Distinct layers with nothing to use, which are in no sum.
  /// "1.80x": how much faster than the default choices; "-" if no layer tells.
  std::string gain() const;
  /// Remark on the sums besides times, in words, to follow them; empty if there is nothing to say.
  std::string remark() const;
};
/// The same of one layer.
std::string gain_text(const tuner::JobResult& result);
Totals totals_of(const std::vector<tuner::JobResult>& results);
/// Candidates tried, all layers.
size_t trials_in(const std::vector<tuner::JobResult>& results);

}  // namespace kiln::cli
