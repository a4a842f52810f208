#include "kiln/norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "kiln/base/error.h"
#include "norm_call.h"
#include "operation_call.h"
#include "user_tensors.h"

namespace kiln {
namespace {

// Refuses a call without axes.
std::span<const int> checked(const Axes& axes, const CallShape& shape) {
  if (axes.count >= 1 && axes.count <= static_cast<int>(axes.axis.size())) {
    return {axes.axis.data(), static_cast<size_t>(axes.count)};
  }
  const std::string_view operation = shape.operation->name();
  throw Error(ErrorCode::invalid_argument,
              axes.count == 0 ? fmt::format("{}: no axes are given", operation)
                              : fmt::format("{}: {} axes are given", operation, axes.count),
              "name the dimensions that are normalised, {-1} for the last");
}

}  // namespace

Axes::Axes(std::initializer_list<int> axes) : count(static_cast<int>(axes.size())) {
  if (axes.size() > axis.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} axes are given", axes.size()), "a tensor has at most 6");
  }
  std::copy(axes.begin(), axes.end(), axis.begin());
}

void norm_forward(Context& context, const Axes& axes, const Tensor& x, const Tensor& y, const NormOptions& options,
                  Stream stream) {
  call_norm_forward(context, axes, x, y, options, user_tensors_of(options.epilogue), stream);
}

void call_norm_forward(Context& context, const Axes& axes, const Tensor& x, const Tensor& y, const NormOptions& options,
                       std::span<const Tensor> user_tensors, Stream stream) {
  const std::span<const int> normalised = checked(axes, call_shape<"norm_forward">());
  run_call<"norm_forward">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("w", options.w);
    call.operand("b", options.b);
    call.operand("y", y);
    call.operand("mean", options.mean);
    call.operand("inv_deviation", options.inv_deviation);
    call.operand("running_mean", options.running_mean);
    call.operand("running_variance", options.running_variance);
    call.operand("residual", options.epilogue.residual());
    call.ints("axes", normalised);
    call.word("mode", options.mode);
    call.word("activation", options.activation.mode);
    say_common(call, options, x);
    call.number("epsilon", options.epsilon);
    call.number("momentum", options.momentum);
    say_activation_numbers(call, options.activation);
    call.epilogue(options.epilogue, user_tensors);
  });
}

void norm_affine(Context& context, const Axes& axes, const Tensor& x, const Tensor& scale, const Tensor& shift,
                 const NormAffineOptions& options, Stream stream) {
  call_norm_affine(context, axes, x, scale, shift, options, user_tensors_of(options.epilogue), stream);
}

void call_norm_affine(Context& context, const Axes& axes, const Tensor& x, const Tensor& scale, const Tensor& shift,
                      const NormAffineOptions& options, std::span<const Tensor> user_tensors, Stream stream) {
  const std::span<const int> normalised = checked(axes, call_shape<"norm_affine">());
  run_call<"norm_affine">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("w", options.w);
    call.operand("b", options.b);
    call.operand("scale", scale);
    call.operand("shift", shift);
    call.ints("axes", normalised);
    call.word("mode", options.mode);
    call.dynamic_batch(options.dynamic_batch, x);
    call.number("epsilon", options.epsilon);
    call.user_code(options.epilogue, user_tensors);
  });
}

void norm_inference(Context& context, const Axes& axes, const Tensor& x, const Tensor& running_mean,
                    const Tensor& running_variance, const Tensor& y, const NormOptions& options, Stream stream) {
  const std::span<const int> normalised = checked(axes, call_shape<"norm_inference">());
  run_call<"norm_inference">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("w", options.w);
    call.operand("b", options.b);
    call.operand("running_mean", running_mean);
    call.operand("running_variance", running_variance);
    call.operand("y", y);
    call.operand("residual", options.epilogue.residual());
    call.ints("axes", normalised);
    call.word("activation", options.activation.mode);
    say_common(call, options, x);
    call.number("epsilon", options.epsilon);
    say_activation_numbers(call, options.activation);
    call.epilogue(options.epilogue);
  });
}

void norm_backward(Context& context, const Axes& axes, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                   const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  call_norm_backward(context, axes, {dy, x, inv_deviation, dx}, options, user_tensors_of(options.epilogue), stream);
}

void call_norm_backward(Context& context, const Axes& axes, const NormGradientTensors& tensors,
                        const NormGradientOptions& options, std::span<const Tensor> user_tensors, Stream stream) {
  if (options.mode == NormMode::standard && !options.mean) {
    throw Error(ErrorCode::invalid_argument, "norm_backward: mean is missing", "give the mean that the forward saved");
  }
  const std::span<const int> normalised = checked(axes, call_shape<"norm_backward">());
  run_call<"norm_backward">(context, stream, [&](auto& call) {
    call.operand("dy", tensors.dy);
    call.operand("x", tensors.x);
    call.operand("w", options.w);
    call.operand("b", options.b);
    call.operand("mean", options.mean);
    call.operand("inv_deviation", tensors.inv_deviation);
    call.operand("y", options.y);
    call.operand("residual", options.residual);
    call.operand("dx", tensors.dx);
    call.operand("dw", options.dw);
    call.operand("db", options.db);
    call.operand("dresidual", options.dresidual);
    call.ints("axes", normalised);
    call.word("mode", options.mode);
    call.word("activation", options.activation.mode);
    say_common(call, options, tensors.dy);
    call.blend("parameter", options.parameter_alpha, options.parameter_beta);
    call.blend("dresidual", options.dresidual_alpha, options.dresidual_beta);
    say_activation_numbers(call, options.activation);
    call.user_code(options.epilogue, user_tensors);
  });
}

}  // namespace kiln
