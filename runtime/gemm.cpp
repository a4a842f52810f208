#include "kiln/gemm.h"

#include "kiln/base/error.h"
#include "kiln/generator/operations/gemm.h"
#include "operation_call.h"

namespace kiln {
namespace {

CallKey key_of(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::gemm));
  key.add(a);
  key.add(b);
  key.add(c);
  key.add(flags_of(options, word_of(options.arithmetic)));
  key.add(options.epilogue);
  return key;
}

Request request_of(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options) {
  Gemm gemm;
  gemm.a = a.spec();
  gemm.b = b.spec();
  gemm.c = c.spec();
  gemm.arithmetic = options.arithmetic;
  gemm.blend = blend_of(options);
  gemm.dynamic_batch = options.dynamic_batch;
  set_stages("gemm", options.epilogue, gemm);
  return with_user_code(gemm.request(), c, options.epilogue);
}

}  // namespace

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
  refuse_overlap("gemm", c, "a", a, "c");
  refuse_overlap("gemm", c, "b", b, "c");
  CallOperands operands{a, b, c};
  operands.add_epilogue("gemm", c, options.epilogue, "c");
  run_call(context, key_of(a, b, c, options), operands.addresses(), staged_values_of(options, a), stream,
           [&] { return request_of(a, b, c, options); });
}

}  // namespace kiln
