// How a long command says where it is: a bar on a terminal, plain lines elsewhere, or a JSON object a line for
// programs.
#pragma once

#include <cstddef>
#include <string>

#include "kiln/tuner/session.h"

namespace kiln::cli {

/// "layer 3/20, candidate 5/16, 40s left, best 12.3 us", and what takes long: "; checking conv_direct TILE=8 for 12s".
std::string progress_status(const tuner::Progress& progress);
/// The same behind a bar of the share that is done: "[#####...] layer ...".
std::string progress_bar(const tuner::Progress& progress);
/// The same as a line of JSON (docs/command-line.md).
std::string progress_json(const tuner::Progress& progress);

enum class ProgressForm {
  none,
  people,  ///< A bar on a terminal, plain lines elsewhere.
  json,
};

/// Writes to stderr: stdout is for results.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(ProgressForm form);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void show(const tuner::Progress& progress);

 private:
  void show_bar(const tuner::Progress& progress);
  void show_line(const tuner::Progress& progress);

  ProgressForm form_;
  bool terminal_;
  bool bar_drawn_ = false;
  std::string request_;      // of the last plain line
  std::string waiting_for_;  // likewise, if it named a step
  double last_shown_ = 0;    // seconds since the start
};

}  // namespace kiln::cli
