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

/// What a call by name may have besides tensors. The spans are read during the call only.
struct CallOptions {
  /// `alpha` (1 if not given) and `beta` (0), the bounds `clip_lo` and `clip_hi` of an epilogue's clip (infinite), and
  /// the numbers of the operation by the names that docs/request-syntax.md has for them: those not given are the usual
  /// ones, as of Plan::values(). Whether alpha or beta is 0, 1 or something else selects the kernel, as everywhere.
  std::span<const NamedScalar> numbers{};
  std::span<const NamedInteger> integers{};
  Epilogue epilogue{};  ///< User code only: expression(). Stages stand in the text.
  /// Device memory for what the call makes in between, 256-byte aligned, apart from its tensors; null: the Context's.
  /// Such a call can be captured into a graph. Calls that overlap in time need one each.
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

/// Enqueues one operation on `stream` and returns without waiting. `what`: a request (docs/request-syntax.md) without
/// its tensors, the classes of alpha and beta, and user code, 512 bytes at the most:
///
///     call(context, "conv_forward pad=1,1 epilogue=bias+relu", {{"x", x}, {"w", w}, {"y", y}, {"bias", bias}});
///
/// `tensors`: the operands by the names that docs/request-syntax.md has for them, in any order. The call does what the
/// operation's own function does, and finds its plan nearly as fast: `what` is parsed once for each shape. Throws Error
/// as that function does, and invalid_argument for a name that the operation does not know, or one that is given twice,
/// for a tensor that is missing, and for a workspace that is too small; for `what`, parse_error or invalid_argument.
void call(Context& context, std::string_view what, std::span<const NamedTensor> tensors,
          const CallOptions& options = {}, Stream stream = nullptr);
inline void call(Context& context, std::string_view what, std::initializer_list<NamedTensor> tensors,
                 const CallOptions& options = {}, Stream stream = nullptr) {
  call(context, what, std::span(tensors.begin(), tensors.size()), options, stream);
}

/// The plan that call() runs for these arguments: its workspace_bytes() are what such a call needs, as long as nothing
/// is tuned meanwhile. The addresses of the tensors may be null here; only how they are aligned matters, null as well
/// as any. Throws as call().
Plan plan_of_call(Context& context, std::string_view what, std::span<const NamedTensor> tensors,
                  const CallOptions& options = {});
inline Plan plan_of_call(Context& context, std::string_view what, std::initializer_list<NamedTensor> tensors,
                         const CallOptions& options = {}) {
  return plan_of_call(context, what, std::span(tensors.begin(), tensors.size()), options);
}

}  // namespace kiln
