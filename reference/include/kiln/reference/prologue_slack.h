// How far the result of an operation may move where a prologue's elements do: a part of the check of user code.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"

namespace kiln::reference {

/// Where the reference is evaluated: at every element, or at so many sample_coordinates().
struct Sampling {
  bool full = true;
  int64_t samples = 0;
  uint64_t seed = 0;
};

/// The most that each element of `output` of `plain` (without_user_code() of a request), in logical order, may move
/// where each element of the operand that prologues apply to may move by the element of `perturbations`, in its logical
/// order. Infinite where that is not known. `operands`: memory of the inputs, that operand as the prologue left it.
/// docs/numerics.md, "User code", derives it for each operation.
std::vector<float> prologue_slack(const Request& plain, const std::string& output,
                                  const std::map<std::string, std::span<const std::byte>>& operands,
                                  std::span<const float> perturbations, const RunValues& values,
                                  const Sampling& sampling);

}  // namespace kiln::reference
