// The report's figures of all layers: for people who look rather than read.
#pragma once

#include <string>

#include "tune_report.h"

namespace kiln::cli {

/// Where the time of one pass through all layers goes, tuned and by default; the layers on the device's roofline; what
/// tuning gained. A figure that has nothing to show is left out.
std::string figures(const TuneReport& report);

}  // namespace kiln::cli
