#include "kiln/norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "activation_numbers.h"
#include "kiln/base/error.h"
#include "named_call.h"

namespace kiln {
namespace {

std::vector<int64_t> values_of(const Axes& axes) {
  return {axes.axis.begin(), axes.axis.begin() + axes.count};
}

// Refuses a call without axes, and adds them to its key.
void add_axes(std::string_view operation, const Axes& axes, CallKey& key) {
  if (axes.count < 1 || axes.count > static_cast<int>(axes.axis.size())) {
    throw Error(ErrorCode::invalid_argument,
                axes.count == 0 ? fmt::format("{}: no axes are given", operation)
                                : fmt::format("{}: {} axes are given", operation, axes.count),
                "name the dimensions that are normalised, {-1} for the last");
  }
  key.add(axes.count);
  for (int i = 0; i < axes.count; ++i) key.add(axes.axis[static_cast<size_t>(i)]);
}

RunValues run_values_of(const NormOptions& options, const Tensor& x, bool has_momentum) {
  RunValues values = values_of(options, x);
  size_t count = 0;
  values.scalars[count++] = options.epsilon;
  if (has_momentum) values.scalars[count++] = options.momentum;
  set_numbers(options.activation, count, values);
  return values;
}

RunValues run_values_of(const NormGradientOptions& options, const Tensor& dy) {
  RunValues values = values_of(options, dy);
  values.scalars = {options.parameter_alpha, options.parameter_beta, options.dresidual_alpha, options.dresidual_beta};
  set_numbers(options.activation, 4, values);
  return values;
}

// Refuses an `add` of nothing; the stages.
std::vector<EpilogueStage> stages_of(std::string_view operation, const Epilogue& epilogue) {
  std::vector<EpilogueStage> stages;
  for (int i = 0; i < epilogue.count(); ++i) stages.push_back(epilogue.stage(i));
  const bool adds = std::find(stages.begin(), stages.end(), EpilogueStage::add) != stages.end();
  if (adds && !epilogue.residual()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: the epilogue stage add has no tensor", operation),
                "write kiln::add(residual)");
  }
  return stages;
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
  constexpr std::string_view operation = "norm_forward";
  NamedCall call(operation, CallKind::norm_forward,
                 {{"x", &x},
                  {"w", pointer_to(options.w)},
                  {"b", pointer_to(options.b)},
                  {"y", &y, true, {"x", "residual"}},
                  {"mean", pointer_to(options.mean), true},
                  {"inv_deviation", pointer_to(options.inv_deviation), true},
                  {"running_mean", pointer_to(options.running_mean), true},
                  {"running_variance", pointer_to(options.running_variance), true},
                  {"residual", pointer_to(options.epilogue.residual())}});
  add_axes(operation, axes, call.key);
  call.key.add(flags_of(options, static_cast<int64_t>(options.mode)));
  call.key.add(static_cast<int64_t>(options.activation.mode));
  call.add_epilogue(operation, options.epilogue);
  call.run(context, run_values_of(options, x, true), stream, [&] {
    NormForward norm;
    norm.x = x.spec();
    norm.y = y.spec();
    norm.w = spec_of(options.w);
    norm.b = spec_of(options.b);
    norm.mean = spec_of(options.mean);
    norm.inv_deviation = spec_of(options.inv_deviation);
    norm.running_mean = spec_of(options.running_mean);
    norm.running_variance = spec_of(options.running_variance);
    norm.residual = spec_of(options.epilogue.residual());
    norm.axes = values_of(axes);
    norm.mode = options.mode;
    norm.epilogue = stages_of(operation, options.epilogue);
    norm.activation = options.activation.mode;
    norm.blend = blend_of(options);
    norm.dynamic_batch = options.dynamic_batch;
    return with_user_code(norm.request(), y, options.epilogue);
  });
}

void norm_inference(Context& context, const Axes& axes, const Tensor& x, const Tensor& running_mean,
                    const Tensor& running_variance, const Tensor& y, const NormOptions& options, Stream stream) {
  constexpr std::string_view operation = "norm_inference";
  NamedCall call(operation, CallKind::norm_inference,
                 {{"x", &x},
                  {"w", pointer_to(options.w)},
                  {"b", pointer_to(options.b)},
                  {"running_mean", &running_mean},
                  {"running_variance", &running_variance},
                  {"y", &y, true, {"x", "residual"}},
                  {"residual", pointer_to(options.epilogue.residual())}});
  add_axes(operation, axes, call.key);
  call.key.add(flags_of(options));
  call.key.add(static_cast<int64_t>(options.activation.mode));
  call.add_epilogue(operation, options.epilogue);
  call.run(context, run_values_of(options, x, false), stream, [&] {
    NormInference norm;
    norm.x = x.spec();
    norm.y = y.spec();
    norm.w = spec_of(options.w);
    norm.b = spec_of(options.b);
    norm.running_mean = running_mean.spec();
    norm.running_variance = running_variance.spec();
    norm.residual = spec_of(options.epilogue.residual());
    norm.axes = values_of(axes);
    norm.epilogue = stages_of(operation, options.epilogue);
    norm.activation = options.activation.mode;
    norm.blend = blend_of(options);
    norm.dynamic_batch = options.dynamic_batch;
    return with_user_code(norm.request(), y, options.epilogue);
  });
}

void norm_backward(Context& context, const Axes& axes, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                   const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  constexpr std::string_view operation = "norm_backward";
  if (options.mode == NormMode::standard && !options.mean) {
    throw Error(ErrorCode::invalid_argument, "norm_backward: mean is missing", "give what the forward saved");
  }
  NamedCall call(operation, CallKind::norm_backward,
                 {{"dy", &dy},
                  {"x", &x},
                  {"w", pointer_to(options.w)},
                  {"b", pointer_to(options.b)},
                  {"mean", pointer_to(options.mean)},
                  {"inv_deviation", &inv_deviation},
                  {"y", pointer_to(options.y)},
                  {"residual", pointer_to(options.residual)},
                  {"dx", &dx, true, {"dy", "x"}},
                  {"dw", pointer_to(options.dw), true},
                  {"db", pointer_to(options.db), true},
                  {"dresidual", pointer_to(options.dresidual), true, {"dy"}}});
  add_axes(operation, axes, call.key);
  call.key.add(flags_of(options, static_cast<int64_t>(options.mode)));
  const Blend parameter_blend = blend_of(options.parameter_alpha, options.parameter_beta);
  const Blend dresidual_blend = blend_of(options.dresidual_alpha, options.dresidual_beta);
  call.key.add(static_cast<int64_t>(options.activation.mode) << 32 | word_of(parameter_blend) << 4 |
               word_of(dresidual_blend));
  call.add_user_code(operation, options.epilogue);
  call.run(context, run_values_of(options, dy), stream, [&] {
    NormBackward norm;
    norm.dy = dy.spec();
    norm.x = x.spec();
    norm.inv_deviation = inv_deviation.spec();
    norm.dx = dx.spec();
    norm.mean = spec_of(options.mean);
    norm.w = spec_of(options.w);
    norm.b = spec_of(options.b);
    norm.y = spec_of(options.y);
    norm.residual = spec_of(options.residual);
    norm.dw = spec_of(options.dw);
    norm.db = spec_of(options.db);
    norm.dresidual = spec_of(options.dresidual);
    norm.axes = values_of(axes);
    norm.mode = options.mode;
    norm.activation = options.activation.mode;
    norm.blend = blend_of(options);
    norm.parameter_blend = parameter_blend;
    norm.dresidual_blend = dresidual_blend;
    norm.dynamic_batch = options.dynamic_batch;
    return with_user_code(norm.request(), dx, options.epilogue);
  });
}

}  // namespace kiln
