// How far the result of an operation may move where a prologue's elements do: a part of the check of user code.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"

namespace kiln::reference {

// The functions below are asked for `plain`, without_user_code() of a request, with the memory of its inputs: that
// operand which prologues apply to as the prologue left it. Each element of that operand may move by the element of
// `perturbations`, in its logical order. docs/numerics.md, "User code", derives how far outputs move for each
// operation.

/// A call of `plain` itself that says how far its result may move, by the magnitude of what it gives; NaN and
/// infinities stand for what is not known.
struct SlackCall {
  std::map<std::string, std::vector<std::byte>> operands;  ///< Contents of each operand that the call reads.
  RunValues values;
  double error = 0;  ///< The most that f32 arithmetic takes from what the call should give, relative to that.
};

/// Call that gives the slack, where the operation is linear in the operand that prologues apply to, or picks one of its
/// elements. Nothing for other operations, and where nothing moves: prologue_slack() gives the slack then.
std::optional<SlackCall> slack_call(const Request& plain,
                                    const std::map<std::string, std::span<const std::byte>>& operands,
                                    std::span<const float> perturbations, const RunValues& values);

/// The most that each element of `outputs`, by their names, may move, in logical order. Infinite where that is not
/// known. Asked at once, what they have in common is computed once; on all of the machine's threads.
/// Throws Error(internal) where slack_call() says it.
std::map<std::string, std::vector<float>> prologue_slack(
    const Request& plain, std::span<const std::string> outputs,
    const std::map<std::string, std::span<const std::byte>>& operands, std::span<const float> perturbations,
    const RunValues& values);

/// Values for calls of without_user_code(request) that give the results of `values`: padding is rounded as the operand
/// around it is, whose dtype is another one there.
RunValues values_without_user_code(const Request& request, RunValues values);

}  // namespace kiln::reference
