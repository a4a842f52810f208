// Made by scripts/c-api from capi/operations/activation.txt and the definitions of the operations.
#include "kiln/activation.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_ACTIVATION_MISH == static_cast<int>(ActivationMode::mish), "the words stand in one order");

ActivationOptions options_of(const kiln_activation_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  ActivationOptions options;
  options.mode = word_of<kiln::ActivationMode>(given.mode, KILN_ACTIVATION_MISH, function, "the mode",
                                               "use KILN_ACTIVATION_IDENTITY or another of these");
  options.slope = given.slope;
  options.offset = given.offset;
  options.low = given.low;
  options.high = given.high;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_activation_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                    const kiln_activation_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_activation_forward";
    require(context, function, "context");
    const kiln_activation_options given =
        read(options, kiln_activation_options_default(KILN_ACTIVATION_RELU), function);
    kiln::activation_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                             options_of(given, function), stream);
  });
}

kiln_status kiln_activation_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                     const kiln_tensor* dx, const kiln_activation_options* options,
                                     kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_activation_backward";
    require(context, function, "context");
    const kiln_activation_options given =
        read(options, kiln_activation_options_default(KILN_ACTIVATION_RELU), function);
    kiln::activation_backward(*context->context, tensor_of(x, function, "x"), tensor_of(dy, function, "dy"),
                              tensor_of(dx, function, "dx"), options_of(given, function), stream);
  });
}

kiln_status kiln_activation_backward_from_y(kiln_context* context, const kiln_tensor* y, const kiln_tensor* dy,
                                            const kiln_tensor* dx, const kiln_activation_options* options,
                                            kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_activation_backward_from_y";
    require(context, function, "context");
    const kiln_activation_options given =
        read(options, kiln_activation_options_default(KILN_ACTIVATION_RELU), function);
    kiln::activation_backward_from_y(*context->context, tensor_of(y, function, "y"), tensor_of(dy, function, "dy"),
                                     tensor_of(dx, function, "dx"), options_of(given, function), stream);
  });
}
