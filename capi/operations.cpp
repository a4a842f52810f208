#include <fmt/format.h>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/pool.h"
#include "kiln/softmax.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

Pair pair_of(const int64_t* values) {
  return {values[0], values[1]};
}

Padding padding_of(const int64_t* begin, const int64_t* end) {
  return {begin[0], begin[1], end[0], end[1]};
}

PoolMode pool_mode_of(kiln_pool_mode mode) {
  switch (mode) {
    case KILN_POOL_MAX:
      return PoolMode::max;
    case KILN_POOL_AVG:
      return PoolMode::avg;
    case KILN_POOL_AVG_PADDED:
      return PoolMode::avg_padded;
    default:
      throw Error(ErrorCode::invalid_argument, fmt::format("kiln_pool_forward: the mode is {}", mode),
                  "use KILN_POOL_MAX, KILN_POOL_AVG or KILN_POOL_AVG_PADDED");
  }
}

SoftmaxMode softmax_mode_of(kiln_softmax_mode mode) {
  switch (mode) {
    case KILN_SOFTMAX_ACCURATE:
      return SoftmaxMode::accurate;
    case KILN_SOFTMAX_LOG:
      return SoftmaxMode::log;
    default:
      throw Error(ErrorCode::invalid_argument, fmt::format("kiln_softmax_forward: the mode is {}", mode),
                  "use KILN_SOFTMAX_ACCURATE or KILN_SOFTMAX_LOG");
  }
}

ConvOptions options_of(const kiln_conv_options* given) {
  const char* const function = "kiln_conv_forward";
  const kiln_conv_options c = read(given, kiln_conv_options_default(), function);
  ConvOptions options;
  options.pad = padding_of(c.pad_begin, c.pad_end);
  options.stride = pair_of(c.stride);
  options.dilation = pair_of(c.dilation);
  options.groups = c.groups;
  options.mirrored = flag(c.mirrored, function, "mirrored");
  options.alpha = c.alpha;
  options.beta = c.beta;
  if (c.epilogue != nullptr) options.epilogue = c.epilogue->stages;
  options.arithmetic.tf32 = flag(c.tf32, function, "tf32");
  options.arithmetic.fast = flag(c.fast, function, "fast");
  options.arithmetic.deterministic = flag(c.deterministic, function, "deterministic");
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return options;
}

PoolOptions options_of(const kiln_pool_options* given) {
  const char* const function = "kiln_pool_forward";
  const kiln_pool_options c = read(given, kiln_pool_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  PoolOptions options;
  options.mode = pool_mode_of(c.mode);
  options.window = pair_of(c.window);
  options.pad = padding_of(c.pad_begin, c.pad_end);
  options.stride = pair_of(c.stride);
  options.dilation = pair_of(c.dilation);
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return options;
}

SoftmaxOptions options_of(const kiln_softmax_options* given) {
  const char* const function = "kiln_softmax_forward";
  const kiln_softmax_options c = read(given, kiln_softmax_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  SoftmaxOptions options;
  options.axis = c.axis;
  options.mode = softmax_mode_of(c.mode);
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return options;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_conv_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w, const kiln_tensor* y,
                              const kiln_conv_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_conv_forward";
    require(context, function, "context");
    kiln::conv_forward(*context->context, tensor_of(x, function, "x"), tensor_of(w, function, "w"),
                       tensor_of(y, function, "y"), options_of(options), stream);
  });
}

kiln_status kiln_pool_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                              const kiln_pool_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_pool_forward";
    require(context, function, "context");
    kiln::pool_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"), options_of(options),
                       stream);
  });
}

kiln_status kiln_softmax_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                 const kiln_softmax_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_softmax_forward";
    require(context, function, "context");
    kiln::softmax_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                          options_of(options), stream);
  });
}
