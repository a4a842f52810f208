// Launches of compiled kernels that others have measured: what tensor_kernels.py writes.
#pragma once

#include <string>
#include <vector>

#include "kiln/timing/card.h"
#include "kiln/timing/interpret.h"

namespace kiln::bench {

struct MeasuredLaunch {
  std::string row;
  double milliseconds = 0;
  timing::Card card;   // at the clock of the measurement
  std::string cubin;   // path
  std::string kernel;  // part of its name
  timing::Launch launch;
};

struct LaunchTable {
  std::string name;
  std::string device;
  std::vector<MeasuredLaunch> launches;
};

/// Tables of the file, in the order of their first rows. Cubins lie beside it. Throws Error(io_error),
/// Error(parse_error) with the line.
std::vector<LaunchTable> read_launches(const std::string& path);

}  // namespace kiln::bench
