// Made by scripts/c-api from capi/operations/conv.txt and the definitions of the operations.
#include "kiln/conv.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"
#include "window.h"

namespace kiln::capi {

ConvOptions options_of(const kiln_conv_options& given, int rank, const char* function) {
  ConvOptions options;
  set_window(given, rank, options);
  options.mirrored = flag(given.mirrored, function, "mirrored");
  options.groups = given.groups;
  options.epilogue = epilogue_of(given.epilogue);
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.arithmetic.tf32 = flag(given.tf32, function, "tf32");
  options.arithmetic.fast = flag(given.fast, function, "fast");
  options.arithmetic.deterministic = flag(given.deterministic, function, "deterministic");
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  return options;
}

ConvBackwardOptions options_of(const kiln_conv_backward_options& given, int rank, const char* function) {
  ConvBackwardOptions options;
  set_window(given, rank, options);
  options.mirrored = flag(given.mirrored, function, "mirrored");
  options.groups = given.groups;
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.arithmetic.tf32 = flag(given.tf32, function, "tf32");
  options.arithmetic.fast = flag(given.fast, function, "fast");
  options.arithmetic.deterministic = flag(given.deterministic, function, "deterministic");
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

ConvBackwardBiasOptions options_of(const kiln_conv_backward_bias_options& given, const char* function) {
  ConvBackwardBiasOptions options;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_conv_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w, const kiln_tensor* y,
                              const kiln_conv_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_forward";
    require(context, function, "context");
    const kiln::Tensor of_x = tensor_of(x, function, "x");
    const kiln_conv_options given = read(options, kiln_conv_options_default(), function);
    kiln::conv_forward(*context->context, of_x, tensor_of(w, function, "w"), tensor_of(y, function, "y"),
                       options_of(given, of_x.rank(), function), stream);
  });
}

kiln_status kiln_conv_backward_data(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* w,
                                    const kiln_tensor* dx, const kiln_conv_backward_options* options,
                                    kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_backward_data";
    require(context, function, "context");
    const kiln::Tensor of_dy = tensor_of(dy, function, "dy");
    const kiln_conv_backward_options given = read(options, kiln_conv_backward_options_default(), function);
    kiln::conv_backward_data(*context->context, of_dy, tensor_of(w, function, "w"), tensor_of(dx, function, "dx"),
                             options_of(given, of_dy.rank(), function), stream);
  });
}

kiln_status kiln_conv_backward_filter(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                      const kiln_tensor* dw, const kiln_conv_backward_options* options,
                                      kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_backward_filter";
    require(context, function, "context");
    const kiln::Tensor of_x = tensor_of(x, function, "x");
    const kiln_conv_backward_options given = read(options, kiln_conv_backward_options_default(), function);
    kiln::conv_backward_filter(*context->context, of_x, tensor_of(dy, function, "dy"), tensor_of(dw, function, "dw"),
                               options_of(given, of_x.rank(), function), stream);
  });
}

kiln_status kiln_conv_backward_bias(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* db,
                                    const kiln_conv_backward_bias_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_backward_bias";
    require(context, function, "context");
    const kiln_conv_backward_bias_options given = read(options, kiln_conv_backward_bias_options_default(), function);
    kiln::conv_backward_bias(*context->context, tensor_of(dy, function, "dy"), tensor_of(db, function, "db"),
                             options_of(given, function), stream);
  });
}
