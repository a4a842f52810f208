#include "kiln/local_conv.h"

#include "boundary.h"
#include "handles.h"
#include "tensor.h"
#include "window.h"

namespace kiln::capi {
namespace {

Grid grid_of(const int64_t* given, int rank) {
  const Named grid = named(given, rank, 0);
  return {.h = grid.h, .w = grid.w, .d = grid.d};
}

LocalConvOptions options_of(const kiln_local_conv_options* given, int rank, const char* function) {
  const kiln_local_conv_options c = read(given, kiln_local_conv_options_default(), function);
  LocalConvOptions options;
  set_convolution(c, rank, function, options);
  options.grid = grid_of(c.grid, rank);
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

LocalConvBackwardOptions options_of(const kiln_local_conv_backward_options* given, int rank, const char* function) {
  const kiln_local_conv_backward_options c = read(given, kiln_local_conv_backward_options_default(), function);
  LocalConvBackwardOptions options;
  set_convolution(c, rank, function, options);
  options.grid = grid_of(c.grid, rank);
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_local_conv_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w,
                                    const kiln_tensor* y, const kiln_local_conv_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_local_conv_forward";
    require(context, function, "context");
    const kiln::Tensor input = tensor_of(x, function, "x");
    kiln::local_conv_forward(*context->context, input, tensor_of(w, function, "w"), tensor_of(y, function, "y"),
                             options_of(options, input.rank(), function), stream);
  });
}

kiln_status kiln_local_conv_backward_data(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* w,
                                          const kiln_tensor* dx, const kiln_local_conv_backward_options* options,
                                          kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_local_conv_backward_data";
    require(context, function, "context");
    const kiln::Tensor gradient = tensor_of(dy, function, "dy");
    kiln::local_conv_backward_data(*context->context, gradient, tensor_of(w, function, "w"),
                                   tensor_of(dx, function, "dx"), options_of(options, gradient.rank(), function),
                                   stream);
  });
}

kiln_status kiln_local_conv_backward_filter(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                            const kiln_tensor* dw, const kiln_local_conv_backward_options* options,
                                            kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_local_conv_backward_filter";
    require(context, function, "context");
    const kiln::Tensor input = tensor_of(x, function, "x");
    kiln::local_conv_backward_filter(*context->context, input, tensor_of(dy, function, "dy"),
                                     tensor_of(dw, function, "dw"), options_of(options, input.rank(), function),
                                     stream);
  });
}
