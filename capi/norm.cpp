#include "kiln/norm.h"

#include <fmt/format.h>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

NormMode mode_of(kiln_norm_mode mode, std::string_view function) {
  switch (mode) {
    case KILN_NORM_STANDARD:
      return NormMode::standard;
    case KILN_NORM_RMS:
      return NormMode::rms;
    default:
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: the mode is {}", function, mode),
                  "use KILN_NORM_STANDARD or KILN_NORM_RMS");
  }
}

template <class Options>
Axes axes_of(const Options& options, std::string_view function) {
  if (options.axis_count < 1 || options.axis_count > KILN_NORM_MAX_AXES) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: axis_count is {}", function, options.axis_count),
                "a tensor has 1 to 5 dimensions");
  }
  Axes axes;
  for (int i = 0; i < options.axis_count; ++i) axes.axis[static_cast<size_t>(axes.count++)] = options.axes[i];
  return axes;
}

std::optional<Tensor> optional_of(const kiln_tensor* tensor, const char* function, const char* name) {
  return tensor == nullptr ? std::nullopt : std::optional(tensor_of(tensor, function, name));
}

struct Given {
  Axes axes;
  NormOptions options;
};

Given given_of(const kiln_norm_options* from, const char* function) {
  const kiln_norm_options c = read(from, kiln_norm_options_default(), function);
  require_zero(c.reserved, function, "reserved");
  NormOptions options;
  options.mode = mode_of(c.mode, function);
  options.w = optional_of(c.w, function, "w");
  options.b = optional_of(c.b, function, "b");
  options.mean = optional_of(c.mean, function, "mean");
  options.inv_deviation = optional_of(c.inv_deviation, function, "inv_deviation");
  options.running_mean = optional_of(c.running_mean, function, "running_mean");
  options.running_variance = optional_of(c.running_variance, function, "running_variance");
  if (c.epilogue != nullptr) options.epilogue = c.epilogue->stages;
  options.epsilon = c.epsilon;
  options.momentum = c.momentum;
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return {axes_of(c, function), options};
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                              const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_norm_forward";
    require(context, function, "context");
    const Given given = given_of(options, function);
    kiln::norm_forward(*context->context, given.axes, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                       given.options, stream);
  });
}

kiln_status kiln_norm_inference(kiln_context* context, const kiln_tensor* x, const kiln_tensor* running_mean,
                                const kiln_tensor* running_variance, const kiln_tensor* y,
                                const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_norm_inference";
    require(context, function, "context");
    const Given given = given_of(options, function);
    kiln::norm_inference(
        *context->context, given.axes, tensor_of(x, function, "x"), tensor_of(running_mean, function, "running_mean"),
        tensor_of(running_variance, function, "running_variance"), tensor_of(y, function, "y"), given.options, stream);
  });
}

kiln_status kiln_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                               const kiln_tensor* mean, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                               const kiln_norm_gradient_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_norm_backward";
    require(context, function, "context");
    const kiln_norm_gradient_options c = read(options, kiln_norm_gradient_options_default(), function);
    kiln::NormGradientOptions given;
    given.mode = mode_of(c.mode, function);
    given.w = optional_of(c.w, function, "w");
    given.mean = optional_of(mean, function, "mean");
    given.y = optional_of(c.y, function, "y");
    given.dw = optional_of(c.dw, function, "dw");
    given.db = optional_of(c.db, function, "db");
    given.dresidual = optional_of(c.dresidual, function, "dresidual");
    given.alpha = c.alpha;
    given.beta = c.beta;
    given.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
    given.accumulate = flag(c.accumulate, function, "accumulate");
    kiln::norm_backward(*context->context, axes_of(c, function), tensor_of(dy, function, "dy"),
                        tensor_of(x, function, "x"), tensor_of(inv_deviation, function, "inv_deviation"),
                        tensor_of(dx, function, "dx"), given, stream);
  });
}
