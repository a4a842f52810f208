// Rules that an operation has for the numbers of its calls.
#pragma once

#include "kiln/generator/operation.h"
#include "kiln/generator/run_values.h"

namespace kiln {

/// Whether the number that `rule` is about is as it says.
inline bool is_kept(const ScalarRule& rule, const RunValues& values) {
  const float value = values.operation_scalars[rule.scalar];
  return value >= rule.least && value <= rule.most && (!rule.floor || value >= values.operation_scalars[*rule.floor]);
}

/// Throws Error(invalid_argument) that names the number, its value and what to give instead.
[[noreturn]] void refuse_scalar(const Request& request, const ScalarRule& rule, const RunValues& values);

}  // namespace kiln
