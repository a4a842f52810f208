// RunValues: what a call gives besides addresses.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "kiln/generator/expression.h"
#include "kiln/generator/request.h"

namespace kiln {

/// The values of a call that are not part of its request.
struct RunValues {
  float alpha = 1;  ///< Must be what the request's class says: 1, or 0, or anything.
  float beta = 0;   ///< As alpha.
  float clip_lo = -std::numeric_limits<float>::infinity();  ///< For the epilogue stage `clip`.
  float clip_hi = std::numeric_limits<float>::infinity();
  std::array<float, Expression::max_scalars> scalars{};  ///< Scalars of user code, in its order.
  /// The numbers of the operation besides (a slope, an epsilon; docs/request-syntax.md lists them), in its order.
  /// Plan::values() sets them by their names.
  std::array<float, max_operation_scalars> operation_scalars{};
  /// The integers of the operation (a seed), in its order.
  std::array<uint64_t, max_operation_integers> operation_integers{};
  int64_t n = -1;  ///< The batch of a request with n=?; -1 otherwise.
};

/// Values that a call of `request` may have, for checks and `kiln run`: scales as its classes fix them, 1 where any
/// will do; the operation's own numbers and integers as usual.
RunValues usual_values(const Request& request);

}  // namespace kiln
