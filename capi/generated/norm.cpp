// Made by scripts/c-api from capi/operations/norm.txt and the definitions of the operations.
#include "kiln/norm.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "norm.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_NORM_RMS == static_cast<int>(NormMode::rms), "the words stand in one order");

NormOptions options_of(const kiln_norm_options& given, const char* function) {
  NormOptions options;
  options.mode = word_of<kiln::NormMode>(given.mode, KILN_NORM_RMS, function, "the mode",
                                         "use KILN_NORM_STANDARD or KILN_NORM_RMS");
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.w = optional_of(given.w, function, "w");
  options.b = optional_of(given.b, function, "b");
  options.mean = optional_of(given.mean, function, "mean");
  options.inv_deviation = optional_of(given.inv_deviation, function, "inv_deviation");
  options.running_mean = optional_of(given.running_mean, function, "running_mean");
  options.running_variance = optional_of(given.running_variance, function, "running_variance");
  options.epilogue = epilogue_of(given.epilogue);
  options.activation = activation_of(given.activation, function);
  options.epsilon = given.epsilon;
  options.momentum = given.momentum;
  options.alpha = given.alpha;
  options.beta = given.beta;
  return options;
}

NormAffineOptions options_of(const kiln_norm_affine_options& given, const char* function) {
  require_zero(given.reserved, function, "reserved");
  NormAffineOptions options;
  options.mode = word_of<kiln::NormMode>(given.mode, KILN_NORM_RMS, function, "the mode",
                                         "use KILN_NORM_STANDARD or KILN_NORM_RMS");
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.epsilon = given.epsilon;
  options.w = optional_of(given.w, function, "w");
  options.b = optional_of(given.b, function, "b");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

NormGradientOptions options_of(const kiln_norm_gradient_options& given, const char* function) {
  NormGradientOptions options;
  options.mode = word_of<kiln::NormMode>(given.mode, KILN_NORM_RMS, function, "the mode",
                                         "use KILN_NORM_STANDARD or KILN_NORM_RMS");
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.w = optional_of(given.w, function, "w");
  options.y = optional_of(given.y, function, "y");
  options.activation = activation_of(given.activation, function);
  options.b = optional_of(given.b, function, "b");
  options.residual = optional_of(given.residual, function, "residual");
  options.dw = optional_of(given.dw, function, "dw");
  options.db = optional_of(given.db, function, "db");
  options.dresidual = optional_of(given.dresidual, function, "dresidual");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.parameter_alpha = given.parameter_alpha;
  options.parameter_beta = given.parameter_beta;
  options.dresidual_alpha = given.dresidual_alpha;
  options.dresidual_beta = given.dresidual_beta;
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                              const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_norm_forward";
    require(context, function, "context");
    const kiln_norm_options given = read(options, kiln_norm_options_default(), function);
    kiln::norm_forward(*context->context, axes_of(given, function), tensor_of(x, function, "x"),
                       tensor_of(y, function, "y"), options_of(given, function), stream);
  });
}

kiln_status kiln_norm_inference(kiln_context* context, const kiln_tensor* x, const kiln_tensor* running_mean,
                                const kiln_tensor* running_variance, const kiln_tensor* y,
                                const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_norm_inference";
    require(context, function, "context");
    const kiln_norm_options given = read(options, kiln_norm_options_default(), function);
    kiln::norm_inference(*context->context, axes_of(given, function), tensor_of(x, function, "x"),
                         tensor_of(running_mean, function, "running_mean"),
                         tensor_of(running_variance, function, "running_variance"), tensor_of(y, function, "y"),
                         options_of(given, function), stream);
  });
}

kiln_status kiln_norm_affine(kiln_context* context, const kiln_tensor* x, const kiln_tensor* scale,
                             const kiln_tensor* shift, const kiln_norm_affine_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_norm_affine";
    require(context, function, "context");
    const kiln_norm_affine_options given = read(options, kiln_norm_affine_options_default(), function);
    kiln::norm_affine(*context->context, axes_of(given, function), tensor_of(x, function, "x"),
                      tensor_of(scale, function, "scale"), tensor_of(shift, function, "shift"),
                      options_of(given, function), stream);
  });
}

kiln_status kiln_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                               const kiln_tensor* mean, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                               const kiln_norm_gradient_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_norm_backward";
    require(context, function, "context");
    const kiln_norm_gradient_options given = read(options, kiln_norm_gradient_options_default(), function);
    kiln::norm_backward(*context->context, axes_of(given, function), tensor_of(dy, function, "dy"),
                        tensor_of(x, function, "x"), tensor_of(inv_deviation, function, "inv_deviation"),
                        tensor_of(dx, function, "dx"),
                        with_mean(options_of(given, function), optional_of(mean, function, "mean")), stream);
  });
}

kiln_status kiln_layer_norm_forward(kiln_context* context, int32_t first_axis, const kiln_tensor* x,
                                    const kiln_tensor* y, const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_layer_norm_forward";
    require(context, function, "context");
    const kiln_norm_options given = read(options, kiln_norm_options_default(), function);
    kiln::layer_norm_forward(*context->context, first_axis, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                             options_of(given, function), stream);
  });
}

// NOLINTNEXTLINE(readability-function-size): the parameters of the C function
kiln_status kiln_layer_norm_backward(kiln_context* context, int32_t first_axis, const kiln_tensor* dy,
                                     const kiln_tensor* x, const kiln_tensor* mean, const kiln_tensor* inv_deviation,
                                     const kiln_tensor* dx, const kiln_norm_gradient_options* options,
                                     kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_layer_norm_backward";
    require(context, function, "context");
    const kiln_norm_gradient_options given = read(options, kiln_norm_gradient_options_default(), function);
    kiln::layer_norm_backward(*context->context, first_axis, tensor_of(dy, function, "dy"), tensor_of(x, function, "x"),
                              tensor_of(inv_deviation, function, "inv_deviation"), tensor_of(dx, function, "dx"),
                              with_mean(options_of(given, function), optional_of(mean, function, "mean")), stream);
  });
}

kiln_status kiln_rms_norm_forward(kiln_context* context, int32_t first_axis, const kiln_tensor* x, const kiln_tensor* y,
                                  const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_rms_norm_forward";
    require(context, function, "context");
    const kiln_norm_options given = read(options, kiln_norm_options_default(), function);
    kiln::rms_norm_forward(*context->context, first_axis, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                           options_of(given, function), stream);
  });
}

kiln_status kiln_rms_norm_backward(kiln_context* context, int32_t first_axis, const kiln_tensor* dy,
                                   const kiln_tensor* x, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                                   const kiln_norm_gradient_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_rms_norm_backward";
    require(context, function, "context");
    const kiln_norm_gradient_options given = read(options, kiln_norm_gradient_options_default(), function);
    kiln::rms_norm_backward(*context->context, first_axis, tensor_of(dy, function, "dy"), tensor_of(x, function, "x"),
                            tensor_of(inv_deviation, function, "inv_deviation"), tensor_of(dx, function, "dx"),
                            options_of(given, function), stream);
  });
}

kiln_status kiln_instance_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                       const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_instance_norm_forward";
    require(context, function, "context");
    const kiln_norm_options given = read(options, kiln_norm_options_default(), function);
    kiln::instance_norm_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                                options_of(given, function), stream);
  });
}

kiln_status kiln_instance_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                        const kiln_tensor* mean, const kiln_tensor* inv_deviation,
                                        const kiln_tensor* dx, const kiln_norm_gradient_options* options,
                                        kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_instance_norm_backward";
    require(context, function, "context");
    const kiln_norm_gradient_options given = read(options, kiln_norm_gradient_options_default(), function);
    kiln::instance_norm_backward(*context->context, tensor_of(dy, function, "dy"), tensor_of(x, function, "x"),
                                 tensor_of(inv_deviation, function, "inv_deviation"), tensor_of(dx, function, "dx"),
                                 with_mean(options_of(given, function), optional_of(mean, function, "mean")), stream);
  });
}

kiln_status kiln_group_norm_forward(kiln_context* context, int64_t groups, const kiln_tensor* x, const kiln_tensor* y,
                                    const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_group_norm_forward";
    require(context, function, "context");
    const kiln_norm_options given = read(options, kiln_norm_options_default(), function);
    kiln::group_norm_forward(*context->context, groups, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                             options_of(given, function), stream);
  });
}

// NOLINTNEXTLINE(readability-function-size): the parameters of the C function
kiln_status kiln_group_norm_backward(kiln_context* context, int64_t groups, const kiln_tensor* dy, const kiln_tensor* x,
                                     const kiln_tensor* mean, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                                     const kiln_norm_gradient_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_group_norm_backward";
    require(context, function, "context");
    const kiln_norm_gradient_options given = read(options, kiln_norm_gradient_options_default(), function);
    kiln::group_norm_backward(*context->context, groups, tensor_of(dy, function, "dy"), tensor_of(x, function, "x"),
                              tensor_of(inv_deviation, function, "inv_deviation"), tensor_of(dx, function, "dx"),
                              with_mean(options_of(given, function), optional_of(mean, function, "mean")), stream);
  });
}

kiln_status kiln_group_norm_affine(kiln_context* context, int64_t groups, const kiln_tensor* x,
                                   const kiln_tensor* scale, const kiln_tensor* shift,
                                   const kiln_norm_affine_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_group_norm_affine";
    require(context, function, "context");
    const kiln_norm_affine_options given = read(options, kiln_norm_affine_options_default(), function);
    kiln::group_norm_affine(*context->context, groups, tensor_of(x, function, "x"), tensor_of(scale, function, "scale"),
                            tensor_of(shift, function, "shift"), options_of(given, function), stream);
  });
}

kiln_status kiln_batch_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                    const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_batch_norm_forward";
    require(context, function, "context");
    const kiln_norm_options given = read(options, kiln_norm_options_default(), function);
    kiln::batch_norm_forward(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                             options_of(given, function), stream);
  });
}

kiln_status kiln_batch_norm_inference(kiln_context* context, const kiln_tensor* x, const kiln_tensor* running_mean,
                                      const kiln_tensor* running_variance, const kiln_tensor* y,
                                      const kiln_norm_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_batch_norm_inference";
    require(context, function, "context");
    const kiln_norm_options given = read(options, kiln_norm_options_default(), function);
    kiln::batch_norm_inference(*context->context, tensor_of(x, function, "x"),
                               tensor_of(running_mean, function, "running_mean"),
                               tensor_of(running_variance, function, "running_variance"), tensor_of(y, function, "y"),
                               options_of(given, function), stream);
  });
}

kiln_status kiln_batch_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                     const kiln_tensor* mean, const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                                     const kiln_norm_gradient_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_batch_norm_backward";
    require(context, function, "context");
    const kiln_norm_gradient_options given = read(options, kiln_norm_gradient_options_default(), function);
    kiln::batch_norm_backward(*context->context, tensor_of(dy, function, "dy"), tensor_of(x, function, "x"),
                              tensor_of(inv_deviation, function, "inv_deviation"), tensor_of(dx, function, "dx"),
                              with_mean(options_of(given, function), optional_of(mean, function, "mean")), stream);
  });
}
