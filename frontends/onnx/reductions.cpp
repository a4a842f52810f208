#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "kiln/generator/operations/reduce.h"
#include "onnx/attributes.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

ReduceMode mode_of(const onnx::NodeProto& node) {
  using enum ReduceMode;
  static const std::map<std::string, ReduceMode> modes = {
      {"ReduceSum", add},  {"ReduceProd", mul}, {"ReduceMin", min}, {"ReduceMax", max}, {"ReduceMean", mean},
      {"ReduceL1", norm1}, {"ReduceL2", norm2}, {"ArgMax", max},    {"ArgMin", min}};
  return modes.at(node.op_type());
}

/// The axes, ascending; nothing if they are not in the file. No axes: all of them, or none where the node says so.
std::optional<Extents> axes_of(const Source& source, size_t rank) {
  const int64_t since = source.node.op_type() == "ReduceSum" ? 13 : 18;
  std::optional<Extents> axes = source.list("axes", 1, since, {});
  if (!axes) return std::nullopt;
  *axes = axes_from_start(source, std::move(*axes), rank);
  const bool none_means_none = Attributes(source.node).integer("noop_with_empty_axes", 0) != 0;
  if (axes->empty() && !none_means_none) {
    axes->resize(rank);
    std::iota(axes->begin(), axes->end(), 0);
  }
  std::sort(axes->begin(), axes->end());
  return axes;
}

bool keeps_dimensions(const Source& source) {
  return Attributes(source.node).integer("keepdims", 1) != 0;
}

Extents without(Extents extents, const Extents& axes, bool keep) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (keep) {
      extents[static_cast<size_t>(*axis)] = 1;
    } else {
      extents.erase(extents.begin() + *axis);
    }
  }
  return extents;
}

/// The request for a result that is stored as the node gives it, with its dimensions or without those of the axes.
Layer reduced(const Source& source, const Extents& axes, bool wants_indices) {
  if (source.options.dynamic_batch && axes.front() == 0) return refused("it reduces the batch, which is dynamic");
  const bool keep = keeps_dimensions(source);
  Reduce reduce;
  reduce.x = source.operand(0);
  const Extents result = without(reduce.x.extents, axes, keep);
  const auto stored = [&](DType dtype) {
    TensorSpec spec = source.spec(result, dtype);
    if (keep) return spec;
    return result.empty() ? with_rank(std::move(spec), reduce.x.extents.size()) : with_ones(std::move(spec), axes);
  };
  reduce.y = stored(reduce.x.dtype);
  if (wants_indices) reduce.indices = stored(DType::i32);
  reduce.axes = axes;
  reduce.mode = mode_of(source.node);
  reduce.dynamic_batch = source.options.dynamic_batch;
  return asked(reduce.request());
}

}  // namespace

std::optional<Extents> reduced_shape(const Source& source) {
  const Extents x = source.extents(0);
  const std::optional<Extents> axes = axes_of(source, x.size());
  return axes ? std::optional(without(x, *axes, keeps_dimensions(source))) : std::nullopt;
}

Layer read_reduce(const Source& source) {
  require_inputs(source, 1, 2);
  const size_t rank = source.extents(0).size();
  const std::optional<Extents> axes = axes_of(source, rank);
  if (!axes) return refused("its axes do not stand in the file");
  if (axes->empty()) return {};  // nothing to reduce: the result is the input
  return reduced(source, *axes, false);
}

Layer read_arg(const Source& source) {
  require_inputs(source, 1, 1);
  const Attributes attributes(source.node);
  if (attributes.integer("select_last_index", 0) != 0) return refused("of equal elements it takes the last");
  const int64_t axis = axis_from_start(source, attributes.integer("axis", 0), source.extents(0).size());
  return reduced(source, {axis}, true);
}

}  // namespace kiln::onnx_frontend
