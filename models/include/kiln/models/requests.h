// The requests of a model: what its runs call.
#pragma once

#include <string>
#include <vector>

#include "kiln/frontends/onnx_graph.h"
#include "kiln/graph/schedule.h"
#include "kiln/model.h"

namespace kiln::models {

/// A model as it is going to run.
struct Lowered {
  OnnxGraph model;
  graph::Schedule schedule;  ///< Empty where nodes are not covered.
};

/// Reads a model and schedules it, as Model does and `kiln tune` lists it. Throws as Model does, but for nodes that are
/// not covered: these it names.
Lowered lower(const std::string& path, const ModelOptions& options);

}  // namespace kiln::models
