#include "kiln/reduce.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "kiln/base/error.h"
#include "operation_call.h"

namespace kiln {
namespace {

// Dimensions that y has given up. Where none has more than one element, the last will do.
std::vector<int64_t> axes_of(const Tensor& x, const Tensor& y, std::string_view operation, std::string_view name_of_x,
                             std::string_view name_of_y) {
  std::vector<int64_t> axes;
  if (x.rank() != y.rank()) return axes;  // the request is refused
  bool has_one = false;
  for (int i = 0; i < x.rank(); ++i) {
    has_one = has_one || y.extent(i) == 1;
    if (y.extent(i) == 1 && x.extent(i) != 1) axes.push_back(i);
  }
  if (!has_one) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} has no extent of 1", operation, name_of_y),
                fmt::format("give it one where {} is reduced", name_of_x));
  }
  if (axes.empty()) axes.push_back(x.extent(x.rank() - 1) == 1 ? x.rank() - 1 : 0);
  return axes;
}

void run(Context& context, ReduceMode mode, const Tensor& x, const Tensor& y, const Tensor* indices,
         const ReduceOptions& options, Stream stream) {
  run_call<"reduce">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    call.operand("indices", indices);
    call.derived_ints("axes", [&] { return axes_of(x, y, "reduce", "x", "y"); });
    call.word("mode", mode);
    say_common(call, options, x);
    call.user_code(options.epilogue);
  });
}

}  // namespace

void reduce(Context& context, ReduceMode mode, const Tensor& x, const Tensor& y, const ReduceOptions& options,
            Stream stream) {
  run(context, mode, x, y, nullptr, options, stream);
}

void reduce(Context& context, ReduceMode mode, const Tensor& x, const Tensor& y, const Tensor& indices,
            const ReduceOptions& options, Stream stream) {
  run(context, mode, x, y, &indices, options, stream);
}

void reduce_backward(Context& context, ReduceMode mode, const Tensor& dy, const Tensor& dx,
                     const ReduceBackwardOptions& options, Stream stream) {
  run_call<"reduce_backward">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("x", options.x);
    call.operand("y", options.y);
    call.operand("indices", options.indices);
    call.operand("dx", dx);
    call.derived_ints("axes", [&] { return axes_of(dx, dy, "reduce_backward", "dx", "dy"); });
    call.word("mode", mode);
    say_common(call, options, dx);
    call.user_code(options.epilogue);
  });
}

}  // namespace kiln
