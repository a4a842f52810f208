#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "kiln/generator/operations/reduce.h"
#include "kiln/generator/operations/tensor_ops.h"
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

/// Why no reduction along `axes` can be had; empty if it can.
std::string refusal_of(const Source& source, const Extents& axes) {
  return source.options.dynamic_batch && axes.front() == 0 ? "it reduces the batch, which is dynamic" : "";
}

/// A result that is stored as the node gives it, with its dimensions or without those of the axes.
Reduce reduction(const Source& source, const Extents& axes, ReduceMode mode, bool wants_indices) {
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
  reduce.mode = mode;
  reduce.dynamic_batch = source.options.dynamic_batch;
  return reduce;
}

Layer reduced(const Source& source, const Extents& axes, bool wants_indices) {
  if (std::string refusal = refusal_of(source, axes); !refusal.empty()) return refused(std::move(refusal));
  return asked(reduction(source, axes, mode_of(source.node), wants_indices).request());
}

/// y = op(a, b), or op(a), of y's extents and storage; inputs may repeat.
Request step(const Source& source, TensorOpMode mode, const TensorSpec& a, std::optional<TensorSpec> b,
             const TensorSpec& y) {
  TensorOp op;
  op.a = a;
  op.b = std::move(b);
  op.y = y;
  op.mode = mode;
  op.dynamic_batch = source.options.dynamic_batch;
  return op.request();
}

/// max + log(sum(exp(x - max))), which no exponential overflows.
Layer log_sum_exp(const Source& source, const Extents& axes) {
  const Reduce max = reduction(source, axes, ReduceMode::max, false);
  const Reduce sum = reduction(source, axes, ReduceMode::add, false);
  return {{max.request(), step(source, TensorOpMode::sub, max.x, max.y, max.x),
           step(source, TensorOpMode::exp, max.x, {}, max.x), sum.request(),
           step(source, TensorOpMode::log, sum.y, {}, sum.y), step(source, TensorOpMode::add, sum.y, max.y, sum.y)},
          {}};
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

Layer read_composed_reduce(const Source& source) {
  require_inputs(source, 1, 2);
  const std::optional<Extents> axes = axes_of(source, source.extents(0).size());
  if (!axes) return refused("its axes do not stand in the file");
  if (axes->empty()) return refused("it reduces nothing, and opsets differ in what that gives");
  if (std::string refusal = refusal_of(source, *axes); !refusal.empty()) return refused(std::move(refusal));
  const std::string& type = source.node.op_type();
  if (type == "ReduceLogSumExp") return log_sum_exp(source, *axes);
  const bool squares = type == "ReduceSumSquare";
  const Reduce reduce = reduction(source, *axes, squares ? ReduceMode::norm2 : ReduceMode::add, false);
  return {{reduce.request(), squares ? step(source, TensorOpMode::mul, reduce.y, reduce.y, reduce.y)
                                     : step(source, TensorOpMode::log, reduce.y, {}, reduce.y)},
          {}};
}

Layer read_arg(const Source& source) {
  require_inputs(source, 1, 1);
  const Attributes attributes(source.node);
  if (attributes.integer("select_last_index", 0) != 0) return refused("of equal elements it takes the last");
  const int64_t axis = axis_from_start(source, attributes.integer("axis", 0), source.extents(0).size());
  return reduced(source, {axis}, true);
}

}  // namespace kiln::onnx_frontend
