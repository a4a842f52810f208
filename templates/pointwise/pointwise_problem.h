// Element-wise operations as their descriptors see them: which function, and how all operands lie together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generator/algorithm.h"
#include "kiln/generator/request.h"

namespace kiln::descriptor {

/// FUNCTION of lib/pointwise_function.cuh, in its order.
enum class PointwiseFunction {
  activation,
  activation_gradient,
  activation_gradient_from_y,
  transform,
  set,
  op,
  dropout,
  op_gradient
};

/// Dimensions that the elements of all operands are counted along, innermost first.
struct PointwiseGrid {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;  ///< Strides of each operand, the result last; 0 along what it repeats.
  std::vector<int64_t> pad_begin, inside;     ///< Begin and extents of the one input with padding.
};

/// A request of an element-wise operation. Its operands are the inputs, at most three, and then the result.
struct PointwiseProblem {
  static PointwiseProblem of(const Request& request);

  PointwiseFunction function = PointwiseFunction::activation;
  int mode = 0;
  bool numbered = false;  ///< The last input is the number of the element in logical order; it is not in memory.
  std::vector<Operand> operands;
  Blend blend;
  bool dynamic_batch = false;
  /// One value a dimension of the request: elements before the input and, in all, around it. Empty without padding.
  std::vector<int64_t> pad_begin, padding;
  int64_t batch = 1;      ///< The bucket's top, if dynamic; else 1.
  int64_t per_image = 1;  ///< Elements of the result, over `batch`.

  /// The dimension along which indices say where the first input stands: it has no stride along it.
  std::optional<size_t> gathered;

  PointwiseGrid logical;  ///< The dimensions of the request, last first.
  /// In the order of the result's memory, those that all operands continue without a gap being one. A dynamic batch
  /// comes last, maybe merged with others.
  PointwiseGrid merged;
  /// The dimension of `merged` along which inputs that lie across the result have their neighbours; 0 if there is none,
  /// or if it holds a dynamic batch.
  size_t cross = 0;
  std::vector<bool> crossing;  ///< Which inputs those are.

  size_t inputs() const { return operands.size() - 1; }
  bool is_in_memory(size_t operand) const { return !numbered || operand + 2 != operands.size(); }
  const TensorSpec& result() const { return operands.back().spec; }
  /// Bytes that have to move between device memory and the SMs.
  double compulsory_bytes() const;
};

/// The constants of lib/pointwise.cuh, with the dimensions of `grid`. `open`: for an open kernel.
Prelude pointwise_prelude(const PointwiseProblem& problem, const PointwiseGrid& grid, bool open);

/// One launch of `entry` with the arguments that the kernels of templates/pointwise take. The grid is the caller's to
/// set.
Launch pointwise_launch(const PointwiseProblem& problem, std::string entry, int threads);

}  // namespace kiln::descriptor
