// Made by scripts/c-api from capi/operations/gemm.txt and the definitions of the operations.
#include "kiln/gemm.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

GemmOptions options_of(const kiln_gemm_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  GemmOptions options;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.arithmetic.tf32 = flag(given.tf32, function, "tf32");
  options.arithmetic.fast = flag(given.fast, function, "fast");
  options.arithmetic.deterministic = flag(given.deterministic, function, "deterministic");
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_gemm(kiln_context* context, const kiln_tensor* a, const kiln_tensor* b, const kiln_tensor* c,
                      const kiln_gemm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_gemm";
    require(context, function, "context");
    const kiln_gemm_options given = read(options, kiln_gemm_options_default(), function);
    kiln::gemm(*context->context, tensor_of(a, function, "a"), tensor_of(b, function, "b"), tensor_of(c, function, "c"),
               options_of(given, function), stream);
  });
}

kiln_status kiln_fully_connected_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w,
                                         const kiln_tensor* y, const kiln_gemm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_fully_connected_forward";
    require(context, function, "context");
    const kiln_gemm_options given = read(options, kiln_gemm_options_default(), function);
    kiln::fully_connected_forward(*context->context, tensor_of(x, function, "x"), tensor_of(w, function, "w"),
                                  tensor_of(y, function, "y"), options_of(given, function), stream);
  });
}

kiln_status kiln_fully_connected_backward_data(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* w,
                                               const kiln_tensor* dx, const kiln_gemm_options* options,
                                               kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_fully_connected_backward_data";
    require(context, function, "context");
    const kiln_gemm_options given = read(options, kiln_gemm_options_default(), function);
    kiln::fully_connected_backward_data(*context->context, tensor_of(dy, function, "dy"), tensor_of(w, function, "w"),
                                        tensor_of(dx, function, "dx"), options_of(given, function), stream);
  });
}

kiln_status kiln_fully_connected_backward_weights(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                                  const kiln_tensor* dw, const kiln_gemm_options* options,
                                                  kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_fully_connected_backward_weights";
    require(context, function, "context");
    const kiln_gemm_options given = read(options, kiln_gemm_options_default(), function);
    kiln::fully_connected_backward_weights(*context->context, tensor_of(x, function, "x"),
                                           tensor_of(dy, function, "dy"), tensor_of(dw, function, "dw"),
                                           options_of(given, function), stream);
  });
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
