// A model for inputs of some extents, ready to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/context.h"
#include "kiln/model.h"
#include "kiln/models/lower.h"
#include "kiln/plan.h"
#include "run_cuda_graphs.h"
#include "weights.h"

namespace kiln::models {

/// An operand that is not in the weights: argument `argument` of a step lies `offset` bytes behind a base.
struct MovingOperand {
  size_t argument;
  size_t base;  ///< The caller's inputs, then the outputs, then the arena.
  int64_t offset;
};

/// A call with all that is known of it before a run.
struct LoadedStep {
  Plan plan;
  RunValues values;
  std::vector<Address> addresses;
  std::vector<MovingOperand> moving;
  std::optional<int64_t> workspace;  ///< Its offset in the arena.
  const void* prepared = nullptr;    ///< Null: the plan prepares nothing.
};

struct Instance {
  std::vector<ModelTensor> inputs, outputs;
  int64_t batch = 1;  ///< As the inputs were resolved.
  std::vector<ModelStep> steps;
  std::vector<LoadedStep> calls;  ///< Calls of `steps`.
  ModelMemory use;
  std::vector<SharedMemory> reads;  ///< Weights of `calls`.
  RunCudaGraphs graphs;
  ModelCost cost;

  /// Bytes of weights that no other instance reads.
  int64_t own_bytes() const;
};

/// Makes the plans, and puts into `weights` what they read of constants and is not there yet. It has the memory of the
/// arena planned, not allocated. Throws as Model does; `weights` is as it was then.
Instance make_instance(Context& context, const Lowered& lowered, Weights& weights);

}  // namespace kiln::models
