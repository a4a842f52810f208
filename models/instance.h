// A model for inputs of some extents, ready to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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

/// A step that an open kernel serves until its own plan is made.
struct OpenStep {
  size_t step;
  int64_t workspace;      ///< Bytes for it in the arena.
  std::string constants;  ///< The digest of its arguments in the weights.
};

struct Instance {
  std::vector<ModelTensor> inputs, outputs;
  int64_t batch = 1;  ///< As the inputs were resolved.
  std::vector<ModelStep> steps;
  std::vector<LoadedStep> calls;  ///< Calls of `steps`.
  std::vector<OpenStep> open;     ///< Steps of these that wait for their plans.
  ModelMemory use;
  int64_t planned_arena = 0;        ///< Bytes of the arena for the plans that it was made with.
  std::vector<SharedMemory> reads;  ///< Weights of `calls`.
  RunCudaGraphs graphs;
  ModelCost cost;

  /// Bytes of weights that no other instance reads.
  int64_t own_bytes() const;
};

/// Makes the plans, and puts into `weights` what they read of constants and is not there yet. It has the memory of the
/// arena planned, not allocated. Throws as Model does; `weights` is as it was then.
Instance make_instance(Context& context, const Lowered& lowered, Weights& weights);

/// Makes the plans of open steps that are not there yet. Throws nothing: for one that cannot be made nothing changes.
void make_exact_plans(Context& context, const Instance& instance);

/// Gives open steps the plans that were made for them by now. Returns whether it gave any: the graphs of the instance
/// are out of date then. `grow`: makes the arena of that many bytes at least, and says whether it is. A step whose plan
/// cannot be had, or needs memory that there is not, keeps its open kernel for good. `may_prepare`: whether weights may
/// be prepared, which runs kernels and waits for them; a step that needs it waits for another call. Throws nothing,
/// also where `grow` does; each step is as before or complete.
bool take_exact_plans(Context& context, Instance& instance, Weights& weights, const std::function<bool(int64_t)>& grow,
                      bool may_prepare);

}  // namespace kiln::models
