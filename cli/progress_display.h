// How a long command says where it is: a bar on a terminal, plain lines elsewhere, or a JSON object a line for
// programs.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "kiln/tuner/session.h"

namespace kiln::cli {

/// "layer 3/20, candidate 5/16, 40s left, best 12.3 us", and what takes long: "; checking conv_direct TILE=8 for 12s".
std::string progress_status(const tuner::Progress& progress);
/// The same behind a bar of the share that is done: "[#####...] layer ...". `device`: which of several it is about, for
/// --device: "[#####...] device 2: layer ..."; empty if there is one.
std::string progress_bar(const tuner::Progress& progress, const std::string& device = {});
/// The same as a line of JSON (docs/command-line.md).
std::string progress_json(const tuner::Progress& progress, const std::string& device = {});

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

  /// `device` as above.
  void show(const tuner::Progress& progress, const std::string& device);
  /// A line of its own, in any form.
  void say(const std::string& line);

 private:
  // Subject of a device's last plain line.
  struct Line {
    std::string request;
    std::string waiting_for;  // if it named a task
    double shown = 0;         // seconds since the start
  };

  void show_bar(const tuner::Progress& progress, const std::string& device);
  void show_line(const tuner::Progress& progress, const std::string& device);

  ProgressForm form_;
  bool terminal_;
  bool bar_drawn_ = false;
  std::map<std::string, Line> lines_;  // by device
};

}  // namespace kiln::cli
