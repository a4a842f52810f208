#include "kiln/norm.h"

#include <fmt/format.h>

#include "activation.h"
#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

using T = const Tensor&;

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
                fmt::format("give 1 to {} axes", KILN_NORM_MAX_AXES));
  }
  Axes axes;
  for (int i = 0; i < options.axis_count; ++i) axes.axis[static_cast<size_t>(axes.count++)] = options.axes[i];
  return axes;
}

std::optional<Tensor> optional_of(const kiln_tensor* tensor, const char* function, const char* name) {
  return tensor == nullptr ? std::nullopt : std::optional(tensor_of(tensor, function, name));
}

// NULL is none, not the default of an activation by itself.
Activation activation_of(const kiln_activation_options* given, const char* function) {
  if (given == nullptr) return {};
  const ActivationOptions options = activation_options_of(given, function);
  return {options.mode, options.slope, options.offset, options.low, options.high};
}

NormOptions options_of(const kiln_norm_options& c, const char* function) {
  NormOptions options;
  options.mode = mode_of(c.mode, function);
  options.w = optional_of(c.w, function, "w");
  options.b = optional_of(c.b, function, "b");
  options.mean = optional_of(c.mean, function, "mean");
  options.inv_deviation = optional_of(c.inv_deviation, function, "inv_deviation");
  options.running_mean = optional_of(c.running_mean, function, "running_mean");
  options.running_variance = optional_of(c.running_variance, function, "running_variance");
  options.epilogue = epilogue_of(c.epilogue);
  options.activation = activation_of(c.activation, function);
  options.epsilon = c.epsilon;
  options.momentum = c.momentum;
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  return options;
}

NormGradientOptions options_of(const kiln_norm_gradient_options& c, const kiln_tensor* mean, const char* function) {
  NormGradientOptions options;
  options.mode = mode_of(c.mode, function);
  options.w = optional_of(c.w, function, "w");
  options.mean = optional_of(mean, function, "mean");
  options.y = optional_of(c.y, function, "y");
  options.activation = activation_of(c.activation, function);
  options.b = optional_of(c.b, function, "b");
  options.residual = optional_of(c.residual, function, "residual");
  options.dw = optional_of(c.dw, function, "dw");
  options.db = optional_of(c.db, function, "db");
  options.dresidual = optional_of(c.dresidual, function, "dresidual");
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  options.parameter_alpha = c.parameter_alpha;
  options.parameter_beta = c.parameter_beta;
  options.dresidual_alpha = c.dresidual_alpha;
  options.dresidual_beta = c.dresidual_beta;
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

// Body of a C function of one direction: it reads its arguments and calls `norm` with the C options, whose axes not
// every function looks at, and with the arguments of the C++ function.
template <class Norm>
kiln_status forward(const char* function, kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                    const kiln_norm_options* options, const Norm& norm) {
  return guarded([&] {
    require(context, function, "context");
    const kiln_norm_options c = read(options, kiln_norm_options_default(), function);
    const NormOptions given = options_of(c, function);
    norm(c, *context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"), given);
  });
}

template <class Norm>
kiln_status inference(const char* function, kiln_context* context, const kiln_tensor* x,
                      const kiln_tensor* running_mean, const kiln_tensor* running_variance, const kiln_tensor* y,
                      const kiln_norm_options* options, const Norm& norm) {
  return forward(function, context, x, y, options, [&](const auto& c, Context& k, T in, T out, const auto& given) {
    norm(c, k, in, tensor_of(running_mean, function, "running_mean"),
         tensor_of(running_variance, function, "running_variance"), out, given);
  });
}

template <class Norm>  // NOLINTNEXTLINE(readability-function-size): the parameters of the C functions
kiln_status backward(const char* function, kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                     const kiln_tensor* mean, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                     const kiln_norm_gradient_options* options, const Norm& norm) {
  return guarded([&] {
    require(context, function, "context");
    const kiln_norm_gradient_options c = read(options, kiln_norm_gradient_options_default(), function);
    const NormGradientOptions given = options_of(c, mean, function);
    norm(c, *context->context, tensor_of(dy, function, "dy"), tensor_of(x, function, "x"),
         tensor_of(inv_deviation, function, "inv_deviation"), tensor_of(dx, function, "dx"), given);
  });
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                              const kiln_norm_options* options, kiln_stream stream) {
  const char* const function = "kiln_norm_forward";
  return forward(function, context, x, y, options,
                 [&](const auto& c, kiln::Context& k, T in, T out, const auto& given) {
                   kiln::norm_forward(k, axes_of(c, function), in, out, given, stream);
                 });
}

kiln_status kiln_norm_inference(kiln_context* context, const kiln_tensor* x, const kiln_tensor* running_mean,
                                const kiln_tensor* running_variance, const kiln_tensor* y,
                                const kiln_norm_options* options, kiln_stream stream) {
  const char* const function = "kiln_norm_inference";
  return inference(function, context, x, running_mean, running_variance, y, options,
                   [&](const auto& c, kiln::Context& k, T in, T mean, T variance, T out, const auto& given) {
                     kiln::norm_inference(k, axes_of(c, function), in, mean, variance, out, given, stream);
                   });
}

kiln_status kiln_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                               const kiln_tensor* mean, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                               const kiln_norm_gradient_options* options, kiln_stream stream) {
  const char* const function = "kiln_norm_backward";
  return backward(function, context, dy, x, mean, inv_deviation, dx, options,
                  [&](const auto& c, kiln::Context& k, T of_y, T in, T inverse, T of_x, const auto& given) {
                    kiln::norm_backward(k, axes_of(c, function), of_y, in, inverse, of_x, given, stream);
                  });
}

kiln_status kiln_layer_norm_forward(kiln_context* context, int32_t first_axis, const kiln_tensor* x,
                                    const kiln_tensor* y, const kiln_norm_options* options, kiln_stream stream) {
  const char* const function = "kiln_layer_norm_forward";
  return forward(function, context, x, y, options, [&](const auto&, kiln::Context& k, T in, T out, const auto& given) {
    kiln::layer_norm_forward(k, first_axis, in, out, given, stream);
  });
}

// NOLINTNEXTLINE(readability-function-size): those of kiln_norm_backward() and one more
kiln_status kiln_layer_norm_backward(kiln_context* context, int32_t first_axis, const kiln_tensor* dy,
                                     const kiln_tensor* x, const kiln_tensor* mean, const kiln_tensor* inv_deviation,
                                     const kiln_tensor* dx, const kiln_norm_gradient_options* options,
                                     kiln_stream stream) {
  const char* const function = "kiln_layer_norm_backward";
  return backward(function, context, dy, x, mean, inv_deviation, dx, options,
                  [&](const auto&, kiln::Context& k, T of_y, T in, T inverse, T of_x, const auto& given) {
                    kiln::layer_norm_backward(k, first_axis, of_y, in, inverse, of_x, given, stream);
                  });
}

kiln_status kiln_rms_norm_forward(kiln_context* context, int32_t first_axis, const kiln_tensor* x, const kiln_tensor* y,
                                  const kiln_norm_options* options, kiln_stream stream) {
  const char* const function = "kiln_rms_norm_forward";
  return forward(function, context, x, y, options, [&](const auto&, kiln::Context& k, T in, T out, const auto& given) {
    kiln::rms_norm_forward(k, first_axis, in, out, given, stream);
  });
}

kiln_status kiln_rms_norm_backward(kiln_context* context, int32_t first_axis, const kiln_tensor* dy,
                                   const kiln_tensor* x, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                                   const kiln_norm_gradient_options* options, kiln_stream stream) {
  const char* const function = "kiln_rms_norm_backward";
  return backward(function, context, dy, x, nullptr, inv_deviation, dx, options,
                  [&](const auto&, kiln::Context& k, T of_y, T in, T inverse, T of_x, const auto& given) {
                    kiln::rms_norm_backward(k, first_axis, of_y, in, inverse, of_x, given, stream);
                  });
}

kiln_status kiln_instance_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                       const kiln_norm_options* options, kiln_stream stream) {
  const char* const function = "kiln_instance_norm_forward";
  return forward(function, context, x, y, options, [&](const auto&, kiln::Context& k, T in, T out, const auto& given) {
    kiln::instance_norm_forward(k, in, out, given, stream);
  });
}

kiln_status kiln_instance_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                        const kiln_tensor* mean, const kiln_tensor* inv_deviation,
                                        const kiln_tensor* dx, const kiln_norm_gradient_options* options,
                                        kiln_stream stream) {
  const char* const function = "kiln_instance_norm_backward";
  return backward(function, context, dy, x, mean, inv_deviation, dx, options,
                  [&](const auto&, kiln::Context& k, T of_y, T in, T inverse, T of_x, const auto& given) {
                    kiln::instance_norm_backward(k, of_y, in, inverse, of_x, given, stream);
                  });
}

kiln_status kiln_group_norm_forward(kiln_context* context, int64_t groups, const kiln_tensor* x, const kiln_tensor* y,
                                    const kiln_norm_options* options, kiln_stream stream) {
  const char* const function = "kiln_group_norm_forward";
  return forward(function, context, x, y, options, [&](const auto&, kiln::Context& k, T in, T out, const auto& given) {
    kiln::group_norm_forward(k, groups, in, out, given, stream);
  });
}

// NOLINTNEXTLINE(readability-function-size): those of kiln_norm_backward() and one more
kiln_status kiln_group_norm_backward(kiln_context* context, int64_t groups, const kiln_tensor* dy, const kiln_tensor* x,
                                     const kiln_tensor* mean, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                                     const kiln_norm_gradient_options* options, kiln_stream stream) {
  const char* const function = "kiln_group_norm_backward";
  return backward(function, context, dy, x, mean, inv_deviation, dx, options,
                  [&](const auto&, kiln::Context& k, T of_y, T in, T inverse, T of_x, const auto& given) {
                    kiln::group_norm_backward(k, groups, of_y, in, inverse, of_x, given, stream);
                  });
}

kiln_status kiln_batch_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                    const kiln_norm_options* options, kiln_stream stream) {
  const char* const function = "kiln_batch_norm_forward";
  return forward(function, context, x, y, options, [&](const auto&, kiln::Context& k, T in, T out, const auto& given) {
    kiln::batch_norm_forward(k, in, out, given, stream);
  });
}

kiln_status kiln_batch_norm_inference(kiln_context* context, const kiln_tensor* x, const kiln_tensor* running_mean,
                                      const kiln_tensor* running_variance, const kiln_tensor* y,
                                      const kiln_norm_options* options, kiln_stream stream) {
  const char* const function = "kiln_batch_norm_inference";
  return inference(function, context, x, running_mean, running_variance, y, options,
                   [&](const auto&, kiln::Context& k, T in, T mean, T variance, T out, const auto& given) {
                     kiln::batch_norm_inference(k, in, mean, variance, out, given, stream);
                   });
}

kiln_status kiln_batch_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                     const kiln_tensor* mean, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                                     const kiln_norm_gradient_options* options, kiln_stream stream) {
  const char* const function = "kiln_batch_norm_backward";
  return backward(function, context, dy, x, mean, inv_deviation, dx, options,
                  [&](const auto&, kiln::Context& k, T of_y, T in, T inverse, T of_x, const auto& given) {
                    kiln::batch_norm_backward(k, of_y, in, inverse, of_x, given, stream);
                  });
}
