// Any operation by its name: for bindings, importers and engines that hold operations as data.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/plan.h"

namespace kiln {

/// The parts of a call by name besides its tensors. The spans are read during the call only.
struct CallOptions {
  /// `alpha` (default 1) and `beta` (0), the bounds `clip_lo` and `clip_hi` of an epilogue's clip (infinite), and the
  /// numbers of the operation by their names in docs/request-syntax.md, with the defaults of Plan::values(). An alpha
  /// or beta of 0, 1 or another value selects another kernel, as in all calls.
  std::span<const NamedScalar> numbers{};
  std::span<const NamedInteger> integers{};
  Epilogue epilogue{};  ///< User code only: expression(). Stages stand in the text.
  /// Device memory for intermediate results, 256-byte aligned, apart from the tensors; null: the Context's. A call with
  /// a workspace of its own can be captured into a CUDA graph. Calls that overlap in time need a workspace each.
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

/// Enqueues one operation on `stream` and returns without waiting. `what`: a request (docs/request-syntax.md) without
/// its tensors, the classes of alpha and beta, and user code, 512 bytes at the most:
///
///     call(context, "conv_forward pad=1,1 epilogue=bias+relu", {{"x", x}, {"w", w}, {"y", y}, {"bias", bias}});
///
/// `tensors`: the operands by their names in docs/request-syntax.md, in any order. The call has the same effect as the
/// operation's own function, and finds its plan nearly as fast: `what` is parsed once for each shape. Throws Error as
/// that function does; invalid_argument also for an unknown name, a name given twice, a missing tensor and a workspace
/// that is too small; parse_error or invalid_argument for a wrong `what`.
void call(Context& context, std::string_view what, std::span<const NamedTensor> tensors,
          const CallOptions& options = {}, Stream stream = nullptr);
inline void call(Context& context, std::string_view what, std::initializer_list<NamedTensor> tensors,
                 const CallOptions& options = {}, Stream stream = nullptr) {
  call(context, what, std::span(tensors.begin(), tensors.size()), options, stream);
}

/// The plan that call() runs for these arguments from now on; with FirstCall::at_once too it is made now. A call needs
/// its workspace_bytes(), as long as nothing is tuned meanwhile. Only the alignment of the tensors' addresses matters
/// here; null counts as aligned. Throws as call().
Plan plan_of_call(Context& context, std::string_view what, std::span<const NamedTensor> tensors,
                  const CallOptions& options = {});
inline Plan plan_of_call(Context& context, std::string_view what, std::initializer_list<NamedTensor> tensors,
                         const CallOptions& options = {}) {
  return plan_of_call(context, what, std::span(tensors.begin(), tensors.size()), options);
}

}  // namespace kiln
