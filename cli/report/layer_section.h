// One layer's part of the report.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tune_report.h"

namespace kiln::cli {

/// Times against roofline and default, the spread of the candidates, what bounds the best as far as `launches` tell,
/// each candidate, and what does not apply and why. `nodes`: of a model, which it serves. `number` counts the layers
/// from 1 and is part of the section's anchor.
std::string layer_section(const tuner::JobResult& result, const std::vector<std::string>& nodes, size_t number,
                          const ModelledLaunches& launches);

/// "#layer-3"
std::string layer_anchor(size_t number);

}  // namespace kiln::cli
