#include "kiln/gemm.h"

#include "boundary.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

using Call = void (*)(Context&, const Tensor&, const Tensor&, const Tensor&, const GemmOptions&, Stream);

GemmOptions options_of(const kiln_gemm_options* given, const char* function) {
  const kiln_gemm_options c = read(given, kiln_gemm_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  GemmOptions options;
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.epilogue = epilogue_of(c.epilogue);
  options.arithmetic.tf32 = flag(c.tf32, function, "tf32");
  options.arithmetic.fast = flag(c.fast, function, "fast");
  options.arithmetic.deterministic = flag(c.deterministic, function, "deterministic");
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return options;
}

struct Operand {
  const kiln_tensor* tensor;
  const char* name;
};

// One of the functions of three tensors, the last of which is its result.
kiln_status run(Call call, const char* function, kiln_context* context, const Operand& first, const Operand& second,
                const Operand& result, const kiln_gemm_options* options, kiln_stream stream) {
  return guarded([&] {
    require(context, function, "context");
    call(*context->context, tensor_of(first.tensor, function, first.name),
         tensor_of(second.tensor, function, second.name), tensor_of(result.tensor, function, result.name),
         options_of(options, function), stream);
  });
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_tensor_transposed(const kiln_tensor* matrix, kiln_tensor* result) {
  return guarded([&] {
    const char* const function = "kiln_tensor_transposed";
    const kiln::Tensor turned = transposed(tensor_of(matrix, function, "matrix"));
    require(result, function, "result");
    kiln_tensor view = {matrix->data, matrix->dtype, matrix->rank, {}, {}};
    for (int i = 0; i < turned.rank(); ++i) {
      view.extents[i] = turned.extent(i);
      view.strides[i] = turned.stride(i);
    }
    *result = view;
  });
}

kiln_status kiln_gemm(kiln_context* context, const kiln_tensor* a, const kiln_tensor* b, const kiln_tensor* c,
                      const kiln_gemm_options* options, kiln_stream stream) {
  return run(kiln::gemm, "kiln_gemm", context, {a, "a"}, {b, "b"}, {c, "c"}, options, stream);
}

kiln_status kiln_fully_connected_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w,
                                         const kiln_tensor* y, const kiln_gemm_options* options, kiln_stream stream) {
  return run(kiln::fully_connected_forward, "kiln_fully_connected_forward", context, {x, "x"}, {w, "w"}, {y, "y"},
             options, stream);
}

kiln_status kiln_fully_connected_backward_data(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* w,
                                               const kiln_tensor* dx, const kiln_gemm_options* options,
                                               kiln_stream stream) {
  return run(kiln::fully_connected_backward_data, "kiln_fully_connected_backward_data", context, {dy, "dy"}, {w, "w"},
             {dx, "dx"}, options, stream);
}

kiln_status kiln_fully_connected_backward_weights(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                                  const kiln_tensor* dw, const kiln_gemm_options* options,
                                                  kiln_stream stream) {
  return run(kiln::fully_connected_backward_weights, "kiln_fully_connected_backward_weights", context, {x, "x"},
             {dy, "dy"}, {dw, "dw"}, options, stream);
}

kiln_status kiln_fully_connected_backward_bias(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* db,
                                               float alpha, float beta, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_fully_connected_backward_bias";
    require(context, function, "context");
    kiln::fully_connected_backward_bias(*context->context, tensor_of(dy, function, "dy"), tensor_of(db, function, "db"),
                                        alpha, beta, stream);
  });
}
