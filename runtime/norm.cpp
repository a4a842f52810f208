#include "kiln/norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "operation_call.h"

namespace kiln {
namespace {

struct Named {
  std::string_view name;
  const Tensor* tensor = nullptr;  // null: not there
  bool is_output = false;
  std::string_view in_place_of{}, or_of{};  // tensors that it may be
};

const Tensor* pointer(const std::optional<Tensor>& tensor) {
  return tensor ? &*tensor : nullptr;
}

std::optional<TensorSpec> spec_of(const std::optional<Tensor>& tensor) {
  return tensor ? std::optional(tensor->spec()) : std::nullopt;
}

std::vector<int64_t> values_of(const Axes& axes) {
  return {axes.axis.begin(), axes.axis.begin() + axes.count};
}

// Outputs share nothing with what stands before them, but where they may take its place. Inputs stand first.
void refuse_overlaps(std::string_view operation, std::span<const Named> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Named& output = tensors[i];
    if (!output.is_output || output.tensor == nullptr) continue;
    for (size_t j = 0; j < tensors.size(); ++j) {
      const Named& other = tensors[j];
      if (i == j || other.tensor == nullptr || (other.is_output && j > i)) continue;
      const bool may_be = other.name == output.in_place_of || other.name == output.or_of;
      (may_be ? refuse_partial_overlap : refuse_overlap)(operation, *output.tensor, other.name, *other.tensor,
                                                         output.name);
    }
  }
}

// The key of a call, and the addresses of its operands in the order of the request.
struct CallParts {
  CallKey key;
  CallOperands operands{};

  // Refuses a call without axes.
  CallParts(std::string_view operation, CallKind kind, const Axes& axes, std::span<const Named> tensors, int64_t flags)
      : key(static_cast<int64_t>(kind)) {
    if (axes.count == 0) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: no axes are given", operation),
                  "name the dimensions that are normalised, {-1} for the last");
    }
    int64_t present = 0;
    for (size_t i = 0; i < tensors.size(); ++i) present |= int64_t{tensors[i].tensor != nullptr} << i;
    key.add(present);
    key.add(axes.count);
    for (int i = 0; i < axes.count; ++i) key.add(axes.axis[static_cast<size_t>(i)]);
    key.add(flags);
    for (const Named& named : tensors) {
      if (named.tensor == nullptr) continue;
      key.add(*named.tensor);
      operands.add(*named.tensor);
    }
  }
};

// Inference reads the first number alone.
RunValues run_values_of(const NormOptions& options, const Tensor& x) {
  RunValues values = values_of(options, x);
  values.scalars = {options.epsilon, options.momentum};
  return values;
}

// Refuses what is no epilogue of a normalisation; its stages.
std::vector<EpilogueStage> stages_of(std::string_view operation, const Epilogue& epilogue) {
  if (epilogue.code()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: it takes no user code", operation),
                "its epilogue is add, relu or both");
  }
  std::vector<EpilogueStage> stages;
  for (int i = 0; i < epilogue.count(); ++i) stages.push_back(epilogue.stage(i));
  const bool adds = std::find(stages.begin(), stages.end(), EpilogueStage::add) != stages.end();
  if (adds && !epilogue.residual()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: the epilogue stage add has no tensor", operation),
                "write kiln::add(residual)");
  }
  return stages;
}

// The stages as a part of a key; the residual is one of the tensors.
int64_t stage_bits(const Epilogue& epilogue) {
  int64_t bits = epilogue.code() ? 1 << 30 : 0;
  for (int i = 0; i < epilogue.count(); ++i) bits |= (static_cast<int64_t>(epilogue.stage(i)) + 1) << (4 * i);
  return bits;
}

}  // namespace

Axes::Axes(std::initializer_list<int> axes) : count(static_cast<int>(axes.size())) {
  if (axes.size() > axis.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} axes are given", axes.size()), "a tensor has at most 5");
  }
  std::copy(axes.begin(), axes.end(), axis.begin());
}

void norm_forward(Context& context, const Axes& axes, const Tensor& x, const Tensor& y, const NormOptions& options,
                  Stream stream) {
  constexpr std::string_view operation = "norm_forward";
  const std::array<Named, 9> tensors = {{{"x", &x},
                                         {"w", pointer(options.w)},
                                         {"b", pointer(options.b)},
                                         {"y", &y, true, "x", "residual"},
                                         {"mean", pointer(options.mean), true},
                                         {"inv_deviation", pointer(options.inv_deviation), true},
                                         {"running_mean", pointer(options.running_mean), true},
                                         {"running_variance", pointer(options.running_variance), true},
                                         {"residual", pointer(options.epilogue.residual())}}};
  refuse_overlaps(operation, tensors);
  CallParts call(operation, CallKind::norm_forward, axes, tensors,
                 flags_of(options, static_cast<int64_t>(options.mode)));
  call.key.add(stage_bits(options.epilogue));
  run_call(context, call.key, call.operands.addresses(), run_values_of(options, x), stream, [&] {
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
    norm.blend = blend_of(options);
    norm.dynamic_batch = options.dynamic_batch;
    return norm.request();
  });
}

void norm_inference(Context& context, const Axes& axes, const Tensor& x, const Tensor& running_mean,
                    const Tensor& running_variance, const Tensor& y, const NormOptions& options, Stream stream) {
  constexpr std::string_view operation = "norm_inference";
  const std::array<Named, 7> tensors = {{{"x", &x},
                                         {"w", pointer(options.w)},
                                         {"b", pointer(options.b)},
                                         {"running_mean", &running_mean},
                                         {"running_variance", &running_variance},
                                         {"y", &y, true, "x", "residual"},
                                         {"residual", pointer(options.epilogue.residual())}}};
  refuse_overlaps(operation, tensors);
  CallParts call(operation, CallKind::norm_inference, axes, tensors, flags_of(options));
  call.key.add(stage_bits(options.epilogue));
  run_call(context, call.key, call.operands.addresses(), run_values_of(options, x), stream, [&] {
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
    norm.blend = blend_of(options);
    norm.dynamic_batch = options.dynamic_batch;
    return norm.request();
  });
}

void norm_backward(Context& context, const Axes& axes, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                   const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  constexpr std::string_view operation = "norm_backward";
  if (options.mode == NormMode::standard && !options.mean) {
    throw Error(ErrorCode::invalid_argument, "norm_backward: mean is missing", "give what the forward saved");
  }
  const std::array<Named, 10> tensors = {{{"dy", &dy},
                                          {"x", &x},
                                          {"w", pointer(options.w)},
                                          {"mean", pointer(options.mean)},
                                          {"inv_deviation", &inv_deviation},
                                          {"y", pointer(options.y)},
                                          {"dx", &dx, true, "dy", "x"},
                                          {"dw", pointer(options.dw), true},
                                          {"db", pointer(options.db), true},
                                          {"dresidual", pointer(options.dresidual), true, "dy"}}};
  refuse_overlaps(operation, tensors);
  const int64_t kind = static_cast<int64_t>(options.mode) * 2 + (options.accumulate ? 1 : 0);
  CallParts call(operation, CallKind::norm_backward, axes, tensors, flags_of(options, kind));
  run_call(context, call.key, call.operands.addresses(), values_of(options, dy), stream, [&] {
    NormBackward norm;
    norm.dy = dy.spec();
    norm.x = x.spec();
    norm.inv_deviation = inv_deviation.spec();
    norm.dx = dx.spec();
    norm.mean = spec_of(options.mean);
    norm.w = spec_of(options.w);
    norm.y = spec_of(options.y);
    norm.dw = spec_of(options.dw);
    norm.db = spec_of(options.db);
    norm.dresidual = spec_of(options.dresidual);
    norm.axes = values_of(axes);
    norm.mode = options.mode;
    norm.accumulate = options.accumulate;
    norm.blend = blend_of(options);
    norm.dynamic_batch = options.dynamic_batch;
    return norm.request();
  });
}

}  // namespace kiln
