// Parts that all algorithms of scatter share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "descriptor/numbers.h"
#include "descriptor/rows.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/scatter.h"
#include "kiln/generator/program.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// A request as descriptors see it: lines along one dimension.
struct ScatterProblem : Scatter {
  static ScatterProblem of(const Request& request);

  Rows lines;  ///< y, updates and indices, the rows of which differ in extent.

  size_t along() const { return static_cast<size_t>(axis); }
  int64_t positions() const { return y.extents[along()]; }    ///< Elements of y in a line.
  int64_t count() const { return updates.extents[along()]; }  ///< Updates in a line.
  /// Whether neighbours among the updates in memory are of neighbouring lines.
  bool lines_are_inner() const { return updates.strides[along()] != 1 || count() == 1; }
  /// Bits of the largest term of a sum by lib/exact_sum.cuh, of at most all updates of a line, and whether these
  /// suffice.
  int64_t sum_bits() const { return bits_of_sum(count()); }
  bool has_sum_bits() const { return sum_bits() >= least_sum_bits; }
  /// Bytes that have to move: each operand once.
  double bytes() const;
};

/// Adds what lib/scatter.cuh asks for beside the dimensions of lines, and the constants of results.
void add_scatter(Prelude& prelude, const ScatterProblem& problem);

/// The constants of lib/scatter_lines.cuh, for blocks of `threads`.
Prelude scatter_lines_prelude(const ScatterProblem& problem, int threads, const Emitter& emit);

/// One launch of `entry` with blocks of `threads`, one for each `elements_per_block` of lines with `elements`: all
/// operands, `workspace`, alpha, beta, user code and n.
Launch scatter_launch(const ScatterProblem& problem, std::string entry, int threads, int64_t elements,
                      int64_t elements_per_block, const std::vector<WorkspaceArgument>& workspace = {});

}  // namespace kiln::descriptor
