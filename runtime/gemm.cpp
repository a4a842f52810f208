#include "kiln/gemm.h"

#include "kiln/base/error.h"
#include "operation_call.h"

namespace kiln {
Tensor transposed(const Tensor& matrix) {
  if (matrix.rank() < 2) {
    throw Error(ErrorCode::invalid_argument, "a tensor of one dimension has no transpose", "give it a second, of 1");
  }
  std::array<int64_t, Tensor::max_rank> extents{}, strides{};
  for (int i = 0; i < matrix.rank(); ++i) {
    extents[static_cast<size_t>(i)] = matrix.extent(i);
    strides[static_cast<size_t>(i)] = matrix.stride(i);
  }
  const auto last = static_cast<size_t>(matrix.rank()) - 1;
  std::swap(extents[last], extents[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return {matrix.data(), matrix.dtype(), std::span(extents.data(), last + 1), std::span(strides.data(), last + 1)};
}

void gemm(Context& context, const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options,
          Stream stream) {
  run_call<"gemm">(context, stream, [&](auto& call) {
    call.operand("a", a);
    call.operand("b", b);
    call.operand("c", c);
    say_staged(call, options.epilogue);
    call.arithmetic(options.arithmetic);
    say_common(call, options, a);
  });
}

}  // namespace kiln
