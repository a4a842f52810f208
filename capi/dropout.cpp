#include "kiln/dropout.h"

#include "boundary.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

DropoutOptions options_of(const kiln_dropout_options* given, const char* function) {
  const kiln_dropout_options c = read(given, kiln_dropout_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  return {.p = c.p,
          .seed = c.seed,
          .offset = c.offset,
          .alpha = c.alpha,
          .beta = c.beta,
          .dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch"),
          .epilogue = epilogue_of(c.epilogue)};
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_dropout_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                 const kiln_dropout_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_dropout_forward";
    require(context, function, "context");
    kiln::dropout_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                          options_of(options, function), stream);
  });
}

kiln_status kiln_dropout_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* dx,
                                  const kiln_dropout_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_dropout_backward";
    require(context, function, "context");
    kiln::dropout_backward(*context->context, tensor_of(dy, function, "dy"), tensor_of(dx, function, "dx"),
                           options_of(options, function), stream);
  });
}
