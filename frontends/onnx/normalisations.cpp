#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "kiln/generator/operations/norm.h"
#include "onnx/attributes.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

const char* const over_the_batch = "it normalises over the batch, which is dynamic";

Extents axes_from(size_t first, size_t rank) {
  Extents axes(rank - first);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(first));
  return axes;
}

/// The same elements as the dimensions of a tensor of `rank` from 1 on, with extents of 1 elsewhere.
TensorSpec from_channels(TensorSpec spec, size_t rank) {
  Extents others = axes_from(spec.extents.size() + 1, rank);
  others.insert(others.begin(), 0);
  return with_ones(std::move(spec), others);
}

/// An input that has a number for each of `count` channels or groups.
TensorSpec parameter_of(const Source& source, int input, int64_t count, DType dtype) {
  const Extents extents = source.extents(input);
  if (extents != Extents{count}) {
    fail(source, fmt::format("input {} is {}, expected {}", input, fmt::join(extents, "x"), count));
  }
  return source.spec(extents, dtype);
}

/// One number for each channel of input 0.
TensorSpec channels_of(const Source& source, int input, DType dtype) {
  const Extents x = source.extents(0);
  return from_channels(parameter_of(source, input, x[1], dtype), x.size());
}

/// Refuses types of statistics that are no floating-point numbers. Sums are in f32 whichever it is.
void check_stash_type(const Source& source) {
  const auto type =
      static_cast<int32_t>(Attributes(source.node).integer("stash_type", int64_t{onnx::TensorProto::FLOAT}));
  if (type == onnx::TensorProto::UNDEFINED || !refusal_of_elements(type, Elements::floating).empty()) {
    fail(source, fmt::format("stash_type is {}, expected a type of floating-point numbers", type));
  }
}

Layer inference(const Source& source) {
  if (source.gives(1) || source.gives(2)) fail(source, "gives running statistics, which it does with training_mode=1");
  NormInference norm;
  norm.x = norm.y = source.operand(0);
  norm.w = channels_of(source, 1, source.options.dtype);
  norm.b = channels_of(source, 2, source.options.dtype);
  norm.running_mean = channels_of(source, 3, DType::f32);
  norm.running_variance = channels_of(source, 4, DType::f32);
  norm.axes = axes_from(2, norm.x.extents.size());
  norm.axes.push_back(0);
  norm.dynamic_batch = source.options.dynamic_batch;
  return asked(norm.request());
}

NormForward norm_of(const Source& source, TensorSpec x, Extents axes) {
  NormForward norm;
  norm.x = norm.y = std::move(x);
  norm.axes = std::move(axes);
  norm.dynamic_batch = source.options.dynamic_batch;
  return norm;
}

Layer training(const Source& source) {
  if (source.options.dynamic_batch) return refused(over_the_batch);
  if (source.gives(3) || source.gives(4)) {
    return refused("it saves a variance, and norm_forward the inverse of the deviation");
  }
  Extents axes = axes_from(2, source.extents(0).size());
  axes.push_back(0);
  NormForward norm = norm_of(source, source.operand(0), std::move(axes));
  norm.w = channels_of(source, 1, source.options.dtype);
  norm.b = channels_of(source, 2, source.options.dtype);
  if (source.gives(1) || source.gives(2)) {
    norm.running_mean = channels_of(source, 3, DType::f32);
    norm.running_variance = channels_of(source, 4, DType::f32);
  }
  return asked(norm.request());
}

/// A scale or shift of a layer normalisation: repeated, as NumPy does, to x's extents.
TensorSpec repeated(const Source& source, int input) {
  const Extents x = source.extents(0);
  Extents own = source.extents(input);
  if (own.size() < x.size()) own.insert(own.begin(), x.size() - own.size(), 1);
  const auto fits = [](int64_t extent, int64_t of_x) { return extent == of_x || extent == 1; };
  if (own.size() != x.size() || !std::equal(own.begin(), own.end(), x.begin(), fits)) {
    fail(source,
         fmt::format("input {} is {}, which does not repeat to {}", input, fmt::join(own, "x"), fmt::join(x, "x")));
  }
  return with_rank(source.operand(input), x.size());
}

/// Images with their channels in groups, N,G,C/G and the spatial dimensions, of which three become one.
TensorSpec grouped(const Source& source, int64_t groups) {
  const Extents x = source.extents(0);
  Extents extents{x[0], groups, x[1] / groups};
  if (x.size() < 5) {
    extents.insert(extents.end(), x.begin() + 2, x.end());
  } else {
    extents.push_back(count_elements(std::span(x).subspan(2)));
  }
  std::string order(dimension_letters(static_cast<int>(extents.size())));
  if (source.options.order == MemoryOrder::nhwc) order = "n" + order.substr(3) + order.substr(1, 2);
  return TensorSpec::packed(source.operand(0).dtype, std::move(extents), order);
}

/// Since opset 21 a number for each channel, before that one for each group.
TensorSpec grouped_parameter(const Source& source, int input, int64_t groups, size_t rank) {
  constexpr int64_t first_with_channels = 21;
  if (source.graph.opset() < first_with_channels) {
    return from_channels(parameter_of(source, input, groups, source.options.dtype), rank);
  }
  const int64_t channels = source.extents(0)[1];
  const TensorSpec flat = parameter_of(source, input, channels, source.options.dtype);
  return from_channels(source.spec({groups, channels / groups}, flat.dtype), rank);
}

}  // namespace

bool trains(const Graph& graph, const onnx::NodeProto& batch_norm) {
  constexpr int64_t first_with_mode = 14;
  if (graph.opset() >= first_with_mode) return Attributes(batch_norm).integer("training_mode", 0) != 0;
  return std::any_of(batch_norm.output().begin() + 1, batch_norm.output().end(),
                     [&](const std::string& output) { return graph.is_used(output); });
}

Layer read_batch_norm(const Source& source) {
  constexpr int64_t last_with_spatial = 8;
  require_inputs(source, 5, 5);
  if (source.graph.opset() <= last_with_spatial && Attributes(source.node).integer("spatial", 1) == 0) {
    return refused("it normalises each activation by itself (spatial=0), and channels are covered");
  }
  if (source.extents(0).size() < 2) return refused("its input has no channels");
  return trains(source.graph, source.node) ? training(source) : inference(source);
}

Layer read_instance_norm(const Source& source) {
  require_inputs(source, 3, 3);
  const size_t rank = source.extents(0).size();
  if (rank < 3) return refused("its input has no spatial dimensions");
  NormForward norm = norm_of(source, source.operand(0), axes_from(2, rank));
  norm.w = channels_of(source, 1, source.options.dtype);
  norm.b = channels_of(source, 2, source.options.dtype);
  return asked(norm.request());
}

Layer read_group_norm(const Source& source) {
  require_inputs(source, 3, 3);
  check_stash_type(source);
  const Extents x = source.extents(0);
  if (x.size() < 3) return refused("its input has no spatial dimensions");
  const int64_t groups = Attributes(source.node).integer("num_groups", 0);
  if (groups < 1 || x[1] % groups != 0) {
    fail(source, fmt::format("num_groups is {}, expected a divisor of the {} channels", groups, x[1]));
  }
  const TensorSpec image = grouped(source, groups);
  NormForward norm = norm_of(source, image, axes_from(2, image.extents.size()));
  norm.w = grouped_parameter(source, 1, groups, image.extents.size());
  norm.b = grouped_parameter(source, 2, groups, image.extents.size());
  return asked(norm.request());
}

Layer read_layer_norm(const Source& source) {
  require_inputs(source, 2, 3);
  check_stash_type(source);
  const Extents x = source.extents(0);
  const auto first =
      static_cast<size_t>(axis_from_start(source, Attributes(source.node).integer("axis", -1), x.size()));
  if (source.options.dynamic_batch && first == 0) return refused(over_the_batch);
  NormForward norm = norm_of(source, source.operand(0), axes_from(first, x.size()));
  norm.w = repeated(source, 1);
  if (source.has_input(2)) norm.b = repeated(source, 2);
  const bool differs = norm.w->extents.front() != 1 || (norm.b && norm.b->extents.front() != 1);
  if (source.options.dynamic_batch && differs) return refused("its scale has the batch, which is dynamic");
  Extents rows = x;
  std::fill(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(), 1);
  if (source.gives(1)) norm.mean = source.spec(rows, DType::f32);
  if (source.gives(2)) norm.inv_deviation = source.spec(rows, DType::f32);
  return asked(norm.request());
}

Layer read_mean_variance_norm(const Source& source) {
  require_inputs(source, 1, 1);
  const size_t rank = source.extents(0).size();
  Extents axes = Attributes(source.node).integers("axes").value_or(Extents{0, 2, 3});
  axes = axes.empty() ? axes_from(0, rank) : axes_from_start(source, std::move(axes), rank);
  if (source.options.dynamic_batch && std::count(axes.begin(), axes.end(), 0) > 0) return refused(over_the_batch);
  return asked(norm_of(source, source.operand(0), std::move(axes)).request());
}

}  // namespace kiln::onnx_frontend
