// Made by scripts/c-api from capi/operations/dropout.txt and the definitions of the operations.
#include "kiln/dropout.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

DropoutOptions options_of(const kiln_dropout_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  DropoutOptions options;
  options.p = given.p;
  options.seed = given.seed;
  options.offset = given.offset;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_dropout_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                 const kiln_dropout_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_dropout_forward";
    require(context, function, "context");
    const kiln_dropout_options given = read(options, kiln_dropout_options_default(), function);
    kiln::dropout_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                          options_of(given, function), stream);
  });
}

kiln_status kiln_dropout_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* dx,
                                  const kiln_dropout_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_dropout_backward";
    require(context, function, "context");
    const kiln_dropout_options given = read(options, kiln_dropout_options_default(), function);
    kiln::dropout_backward(*context->context, tensor_of(dy, function, "dy"), tensor_of(dx, function, "dx"),
                           options_of(given, function), stream);
  });
}
