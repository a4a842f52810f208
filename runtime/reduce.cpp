#include "kiln/reduce.h"

#include <vector>

#include "kiln/base/error.h"
#include "operation_call.h"

namespace kiln {
namespace {

// Dimensions that y has given up. Where none has more than one element, the last will do.
std::vector<int64_t> axes_of(const Tensor& x, const Tensor& y) {
  std::vector<int64_t> axes;
  if (x.rank() != y.rank()) return axes;  // the request is refused
  bool has_one = false;
  for (int i = 0; i < x.rank(); ++i) {
    has_one = has_one || y.extent(i) == 1;
    if (y.extent(i) == 1 && x.extent(i) != 1) axes.push_back(i);
  }
  if (!has_one) {
    throw Error(ErrorCode::invalid_argument, "reduce: y has no extent of 1", "give it one where x is to be reduced");
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
    call.derived_ints("axes", [&] { return axes_of(x, y); });
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

}  // namespace kiln
