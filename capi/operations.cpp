#include <fmt/format.h>

#include "activation.h"
#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/pool.h"
#include "kiln/softmax.h"
#include "tensor.h"
#include "window.h"

namespace kiln::capi {
namespace {

PoolMode pool_mode_of(kiln_pool_mode mode, std::string_view function) {
  switch (mode) {
    case KILN_POOL_MAX:
      return PoolMode::max;
    case KILN_POOL_AVG:
      return PoolMode::avg;
    case KILN_POOL_AVG_PADDED:
      return PoolMode::avg_padded;
    default:
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: the mode is {}", function, mode),
                  "use KILN_POOL_MAX, KILN_POOL_AVG or KILN_POOL_AVG_PADDED");
  }
}

SoftmaxMode softmax_mode_of(kiln_softmax_mode mode, std::string_view function) {
  switch (mode) {
    case KILN_SOFTMAX_ACCURATE:
      return SoftmaxMode::accurate;
    case KILN_SOFTMAX_LOG:
      return SoftmaxMode::log;
    default:
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: the mode is {}", function, mode),
                  "use KILN_SOFTMAX_ACCURATE or KILN_SOFTMAX_LOG");
  }
}

ConvOptions options_of(const kiln_conv_options* given, int rank) {
  const char* const function = "kiln_conv_forward";
  const kiln_conv_options c = read(given, kiln_conv_options_default(), function);
  ConvOptions options;
  set_convolution(c, rank, function, options);
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

PoolOptions options_of(const kiln_pool_options* given, int rank, std::string_view function) {
  const kiln_pool_options c = read(given, kiln_pool_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  PoolOptions options;
  options.mode = pool_mode_of(c.mode, function);
  const Named window = named(c.window, rank, 0);
  options.window = {window.h, window.w};
  options.depth.window = window.d;
  set_window(c, rank, options);
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.epilogue = epilogue_of(c.epilogue);
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return options;
}

SoftmaxOptions options_of(const kiln_softmax_options* given, std::string_view function) {
  const kiln_softmax_options c = read(given, kiln_softmax_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  SoftmaxOptions options;
  options.axis = c.axis;
  options.mode = softmax_mode_of(c.mode, function);
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.epilogue = epilogue_of(c.epilogue);
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return options;
}

}  // namespace

static_assert(KILN_ACTIVATION_MISH == static_cast<int>(ActivationMode::mish), "the modes stand in one order");

ActivationOptions activation_options_of(const kiln_activation_options* given, const char* function) {
  const kiln_activation_options c = read(given, kiln_activation_options_default(KILN_ACTIVATION_RELU), function);
  require_zero(c.reserved, function, "reserved");
  if (c.mode < KILN_ACTIVATION_IDENTITY || c.mode > KILN_ACTIVATION_MISH) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: the mode is {}", function, c.mode),
                "use KILN_ACTIVATION_RELU or another of these");
  }
  ActivationOptions options;
  options.mode = static_cast<ActivationMode>(c.mode);
  options.slope = c.slope;
  options.offset = c.offset;
  options.low = c.low;
  options.high = c.high;
  options.epilogue = epilogue_of(c.epilogue);
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_conv_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w, const kiln_tensor* y,
                              const kiln_conv_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_forward";
    require(context, function, "context");
    const kiln::Tensor input = tensor_of(x, function, "x");
    kiln::conv_forward(*context->context, input, tensor_of(w, function, "w"), tensor_of(y, function, "y"),
                       options_of(options, input.rank()), stream);
  });
}

kiln_status kiln_pool_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                              const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_forward";
    require(context, function, "context");
    const kiln::Tensor input = tensor_of(x, function, "x");
    kiln::pool_forward(*context->context, input, tensor_of(y, function, "y"),
                       options_of(options, input.rank(), function), stream);
  });
}

kiln_status kiln_pool_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                               const kiln_tensor* dx, const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_backward";
    require(context, function, "context");
    const kiln::Tensor result = tensor_of(dx, function, "dx");
    const kiln::PoolOptions given = options_of(options, result.rank(), function);
    const bool reads_x = given.mode == kiln::PoolMode::max;
    kiln::pool_backward(*context->context, tensor_of(dy, function, "dy"),
                        reads_x ? tensor_of(x, function, "x") : result, result, given, stream);
  });
}

kiln_status kiln_pool_forward_with_indices(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                           const kiln_tensor* indices, const kiln_pool_options* options,
                                           kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_forward_with_indices";
    require(context, function, "context");
    const kiln::Tensor input = tensor_of(x, function, "x");
    kiln::pool_forward(*context->context, input, tensor_of(y, function, "y"), tensor_of(indices, function, "indices"),
                       options_of(options, input.rank(), function), stream);
  });
}

kiln_status kiln_pool_backward_from_indices(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* indices,
                                            const kiln_tensor* dx, const kiln_pool_options* options,
                                            kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_backward_from_indices";
    require(context, function, "context");
    const kiln::Tensor result = tensor_of(dx, function, "dx");
    kiln::pool_backward_from_indices(*context->context, tensor_of(dy, function, "dy"),
                                     tensor_of(indices, function, "indices"), result,
                                     options_of(options, result.rank(), function), stream);
  });
}

kiln_status kiln_unpool_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* indices,
                                const kiln_tensor* y, const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_unpool_forward";
    require(context, function, "context");
    const kiln::Tensor result = tensor_of(y, function, "y");
    kiln::unpool_forward(*context->context, tensor_of(x, function, "x"), tensor_of(indices, function, "indices"),
                         result, options_of(options, result.rank(), function), stream);
  });
}

kiln_status kiln_unpool_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* indices,
                                 const kiln_tensor* dx, const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_unpool_backward";
    require(context, function, "context");
    const kiln::Tensor input = tensor_of(dy, function, "dy");
    kiln::unpool_backward(*context->context, input, tensor_of(indices, function, "indices"),
                          tensor_of(dx, function, "dx"), options_of(options, input.rank(), function), stream);
  });
}

kiln_status kiln_softmax_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                 const kiln_softmax_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_softmax_forward";
    require(context, function, "context");
    kiln::softmax_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                          options_of(options, function), stream);
  });
}

kiln_status kiln_softmax_backward(kiln_context* context, const kiln_tensor* y, const kiln_tensor* dy,
                                  const kiln_tensor* dx, const kiln_softmax_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_softmax_backward";
    require(context, function, "context");
    kiln::softmax_backward(*context->context, tensor_of(y, function, "y"), tensor_of(dy, function, "dy"),
                           tensor_of(dx, function, "dx"), options_of(options, function), stream);
  });
}

kiln_status kiln_activation_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                    const kiln_activation_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_activation_forward";
    require(context, function, "context");
    kiln::activation_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                             activation_options_of(options, function), stream);
  });
}

kiln_status kiln_activation_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                     const kiln_tensor* dx, const kiln_activation_options* options,
                                     kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_activation_backward";
    require(context, function, "context");
    kiln::activation_backward(*context->context, tensor_of(x, function, "x"), tensor_of(dy, function, "dy"),
                              tensor_of(dx, function, "dx"), activation_options_of(options, function), stream);
  });
}

kiln_status kiln_activation_backward_from_y(kiln_context* context, const kiln_tensor* y, const kiln_tensor* dy,
                                            const kiln_tensor* dx, const kiln_activation_options* options,
                                            kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_activation_backward_from_y";
    require(context, function, "context");
    kiln::activation_backward_from_y(*context->context, tensor_of(y, function, "y"), tensor_of(dy, function, "dy"),
                                     tensor_of(dx, function, "dx"), activation_options_of(options, function), stream);
  });
}
