// Bounds of the variants that tuning chose, for the report.
#pragma once

#include <vector>

#include "device_choice.h"
#include "kiln/generator/catalogue.h"
#include "kiln/tuner/session.h"
#include "tune_report.h"

namespace kiln::cli {

/// Launches of the winner of each of `results`, which were tuned on the device. Nothing is run: only times by machine
/// code that no data decide are told. Takes up to a second for each layer.
std::vector<ModelledLaunches> launches_of_winners(const DeviceChoice& device, const Catalogue& catalogue,
                                                  const std::vector<tuner::JobResult>& results);

}  // namespace kiln::cli
