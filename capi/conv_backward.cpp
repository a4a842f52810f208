#include "boundary.h"
#include "handles.h"
#include "kiln/conv.h"
#include "tensor.h"
#include "window.h"

namespace kiln::capi {
namespace {

ConvBackwardOptions options_of(const kiln_conv_backward_options* given, int rank, const char* function) {
  const kiln_conv_backward_options c = read(given, kiln_conv_backward_options_default(), function);
  ConvBackwardOptions options;
  set_convolution(c, rank, function, options);
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

ConvBackwardBiasOptions options_of(const kiln_conv_backward_bias_options* given, const char* function) {
  const kiln_conv_backward_bias_options c = read(given, kiln_conv_backward_bias_options_default(), function);
  ConvBackwardBiasOptions options;
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_conv_backward_data(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* w,
                                    const kiln_tensor* dx, const kiln_conv_backward_options* options,
                                    kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_backward_data";
    require(context, function, "context");
    const kiln::Tensor gradient = tensor_of(dy, function, "dy");
    kiln::conv_backward_data(*context->context, gradient, tensor_of(w, function, "w"), tensor_of(dx, function, "dx"),
                             options_of(options, gradient.rank(), function), stream);
  });
}

kiln_status kiln_conv_backward_filter(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                      const kiln_tensor* dw, const kiln_conv_backward_options* options,
                                      kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_backward_filter";
    require(context, function, "context");
    const kiln::Tensor input = tensor_of(x, function, "x");
    kiln::conv_backward_filter(*context->context, input, tensor_of(dy, function, "dy"), tensor_of(dw, function, "dw"),
                               options_of(options, input.rank(), function), stream);
  });
}

kiln_status kiln_conv_backward_bias(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* db,
                                    const kiln_conv_backward_bias_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_backward_bias";
    require(context, function, "context");
    kiln::conv_backward_bias(*context->context, tensor_of(dy, function, "dy"), tensor_of(db, function, "db"),
                             options_of(options, function), stream);
  });
}
