// Made by scripts/c-api from capi/operations/softmax.txt and the definitions of the operations.
#include "kiln/softmax.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_SOFTMAX_LOG == static_cast<int>(SoftmaxMode::log), "the words stand in one order");

SoftmaxOptions options_of(const kiln_softmax_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  SoftmaxOptions options;
  options.mode = word_of<kiln::SoftmaxMode>(given.mode, KILN_SOFTMAX_LOG, function, "the mode",
                                            "use KILN_SOFTMAX_ACCURATE or KILN_SOFTMAX_LOG");
  options.axis = given.axis;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.epilogue = epilogue_of(given.epilogue);
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_softmax_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                 const kiln_softmax_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_softmax_forward";
    require(context, function, "context");
    const kiln_softmax_options given = read(options, kiln_softmax_options_default(), function);
    kiln::softmax_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                          options_of(given, function), stream);
  });
}

kiln_status kiln_softmax_backward(kiln_context* context, const kiln_tensor* y, const kiln_tensor* dy,
                                  const kiln_tensor* dx, const kiln_softmax_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_softmax_backward";
    require(context, function, "context");
    const kiln_softmax_options given = read(options, kiln_softmax_options_default(), function);
    kiln::softmax_backward(*context->context, tensor_of(y, function, "y"), tensor_of(dy, function, "dy"),
                           tensor_of(dx, function, "dx"), options_of(given, function), stream);
  });
}
