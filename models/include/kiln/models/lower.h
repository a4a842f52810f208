// The pipeline from a model file to the steps of its runs: read, optimise, choose layouts, schedule.
#pragma once

#include <string>
#include <vector>

#include "kiln/frontends/onnx.h"
#include "kiln/graph/cost.h"
#include "kiln/graph/schedule.h"
#include "kiln/model.h"

namespace kiln::models {

/// A model as it is going to run.
struct Lowered {
  OnnxGraph model;
  graph::Schedule schedule;  ///< Where nodes are not covered, of the others.
};

/// predicted_seconds(), which is asked once for each request; infinite where nothing serves it. Not thread-safe.
graph::Cost estimated_cost();

/// Reads a model and schedules it: Model runs these steps, and `kiln tune` lists them. Passes choose by `cost`. Throws
/// as Model does, but for nodes that are not covered.
Lowered lower(const OnnxFile& file, const ModelOptions& options, const graph::Cost& cost);
Lowered lower(const std::string& path, const ModelOptions& options, const graph::Cost& cost = estimated_cost());

}  // namespace kiln::models
