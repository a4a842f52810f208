// The rows of a reduce, and the constants of its kernels: shared by the descriptors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "descriptor/rows.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/generator/program.h"

namespace kiln::descriptor {

/// x, y, the indices (a stand-in if there are none) and, as if it were an operand, the position of each element in its
/// row.
struct ReduceRows : Rows {
  static ReduceRows of(const Request& request);

  ReduceMode mode = ReduceMode::add;
  bool with_indices = false;
  Blend blend;

  /// Bytes that have to move.
  double moved_bytes() const;
  /// Words for the order in which a kernel adds; extremes have none.
  std::optional<std::string> order(const std::optional<std::string>& of_sums) const {
    return has_indices(mode) ? "extremes, in any order" : of_sums;
  }
};

/// MODE, WITH_INDICES, ALPHA and BETA.
void add_reduce(Prelude& prelude, const ReduceRows& rows);

/// Rows of a gradient: dx, dy, x, y and the indices (stand-ins for those that the mode does not read) and, as if it
/// were an operand, the position of each element in its row.
struct ReduceGradientRows : Rows {
  static ReduceGradientRows of(const Request& request);

  ReduceMode mode = ReduceMode::add;
  Blend blend;

  /// Bytes that have to move.
  double moved_bytes() const;
};

/// MODE, what it reads, ALPHA and BETA.
void add_reduce_gradient(Prelude& prelude, const ReduceGradientRows& rows);

/// The arguments of kernels of gradients.
std::vector<Argument> reduce_gradient_arguments();

}  // namespace kiln::descriptor
