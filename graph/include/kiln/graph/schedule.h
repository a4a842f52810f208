// Schedule: what a graph runs, as requests in order, and the memory that each of their operands lies in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

struct ScheduleOptions {
  /// Requests with `n=?` wherever their operation has it: kernels of the bucket serve other batches too.
  bool dynamic_batch = false;
  /// Calls whose weights never change ask for `constant_weights`, where their operation has it.
  bool constant_weights = true;
  /// Permissions of calls, where their operation has a choice of arithmetic.
  Arithmetic arithmetic{};
  /// Calls with sums that are not over the batch have `batch_invariant`.
  bool batch_invariant = false;
  /// One for each value, or empty: whether dimension 1 lies innermost in memory, as in NHWC, where the value is free to
  /// lie so. choose_layouts() finds what is cheap.
  std::vector<bool> channels_last{};
};

/// Memory of a schedule.
struct Buffer {
  enum class Home {
    input,     ///< The caller's: `number` of Graph::inputs().
    output,    ///< The caller's: `number` of Graph::outputs().
    constant,  ///< The bytes of value `number`.
    kept,      ///< Written by the steps that run once.
    arena,     ///< Free before its first step and behind its last one.
  };
  Home home = Home::arena;
  size_t number = 0;
  int64_t bytes = 0;
  /// Order of a constant: its dimensions, outermost in memory first; empty for logical order.
  std::vector<size_t> order{};
  /// The first and last of Schedule::steps that use it; nothing if only steps that run once do.
  std::optional<size_t> first_step, last_step;
};

/// Where an operand lies: behind so many bytes of a buffer.
struct Argument {
  size_t buffer = 0;
  int64_t offset = 0;
};

struct Step {
  Request request;                  ///< Complete.
  std::vector<Argument> arguments;  ///< Arguments of request.operands, in that order.
  Numbers numbers;
  Integers integers;
  int64_t batch = -1;                ///< Batch of a request with n=?; -1 otherwise.
  std::vector<std::string> origins;  ///< The nodes of the model that it serves; empty for a copy between layouts.
};

struct Schedule {
  std::vector<Buffer> buffers;
  std::vector<Step> once;   ///< Steps that depend on constants only, to be run when a model is loaded.
  std::vector<Step> steps;  ///< Each run, in this order.
};

/// Copies of a schedule, those that run once included: what is transposed and reshaped in many dimensions takes many.
inline constexpr size_t most_copies = size_t{1} << 14;

/// Makes the requests of all calls that outputs depend on.
///
/// Views cost nothing where strides can say them; a value is written where its last reader wants it: into an output of
/// the model, into its part of a Concat, in the order of dimensions that a reshape behind a permutation needs.
/// Remaining moves become a tensor_transform. Throws Error as finished() does, naming the node; Error(unsupported)
/// beyond most_copies.
Schedule schedule(const Graph& graph, const ScheduleOptions& options = {});

}  // namespace kiln::graph
