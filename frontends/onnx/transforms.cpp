#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "kiln/generator/operations/tensor_ops.h"
#include "onnx/attributes.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

constexpr int64_t largest = std::numeric_limits<int32_t>::max();  // keeps sums inside 64 bits

/// Elements of a tensor from `begin` on, each `step` apart; `extents` of them. All inside.
TensorSpec region(TensorSpec whole, const Extents& begin, const Extents& extents, const Extents& step) {
  int64_t offset = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    offset += begin[d] * whole.strides[d];
    if (extents[d] > 1) whole.strides[d] *= step[d];
  }
  const int64_t bytes = offset % default_alignment * size_of(whole.dtype);
  whole.alignment = static_cast<int>(std::gcd(int64_t{default_alignment}, bytes));
  whole.extents = extents;
  whole.canonicalise();
  return whole;
}

TensorSpec region(TensorSpec whole, const Extents& begin, const Extents& extents) {
  return region(std::move(whole), begin, extents, Extents(extents.size(), 1));
}

Layer refused_batch(const char* does) {
  return refused(fmt::format("it {} the batch, which is dynamic", does));
}

/// What Slice takes along one axis.
struct Run {
  int64_t begin, extent, step;
};

/// By ONNX's rules for step > 0: negative positions count from the end, those outside are moved to the border.
Run run_of(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto inside = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + extent : position, 0, extent);
  };
  const int64_t first = inside(start), last = inside(end);
  return {first, last > first ? (last - first - 1) / step + 1 : 0, step};
}

/// The extents along its axis that a Split gives its outputs; nothing if they are not in the file.
std::optional<Extents> split_sizes(const Source& source, int64_t extent) {
  constexpr int64_t first_with_input = 13, first_with_a_shorter_last = 18;
  const int64_t parts = source.node.output_size();
  std::optional<Extents> sizes = source.list("split", 1, first_with_input, {});
  if (sizes && sizes->empty()) {
    if (extent % parts != 0 && source.graph.opset() < first_with_a_shorter_last) {
      fail(source, fmt::format("{} elements are not {} equal parts", extent, parts));
    }
    const int64_t size = (extent + parts - 1) / parts;
    sizes->assign(static_cast<size_t>(parts), size);
    sizes->back() = extent - size * (parts - 1);
  }
  if (!sizes) return std::nullopt;
  int64_t left = extent;
  for (const int64_t size : *sizes) left = size < 0 || size > left ? -1 : left - size;
  if (left != 0 || std::ssize(*sizes) != parts) {
    fail(source, fmt::format("parts of {} for {} outputs, expected as many that add up to {}", fmt::join(*sizes, ", "),
                             parts, extent));
  }
  return sizes;
}

/// Elements that a Pad puts before and behind each dimension; negative ones are taken away. Nothing if they are not in
/// the file.
std::optional<Extents> pads_of(const Source& source, size_t rank) {
  constexpr int64_t first_with_inputs = 11, first_with_axes = 18;
  const std::optional<Extents> given = source.list("pads", 1, first_with_inputs, {});
  Extents every(rank);
  std::iota(every.begin(), every.end(), 0);
  std::optional<Extents> axes = every;
  if (source.graph.opset() >= first_with_axes) axes = source.list("axes", 3, first_with_axes, every);
  if (!given || !axes) return std::nullopt;
  *axes = axes_from_start(source, std::move(*axes), rank);
  if (given->size() != 2 * axes->size()) {
    fail(source, fmt::format("has {} pads, expected 2 for each of {} axes", given->size(), axes->size()));
  }
  Extents pads(2 * rank, 0);
  for (size_t i = 0; i < given->size(); ++i) {
    const int64_t pad = (*given)[i];
    if (pad < -largest || pad > largest) fail(source, fmt::format("pads holds {}, beyond 2^31 - 1", pad));
    pads[static_cast<size_t>((*axes)[i % axes->size()]) + (i < axes->size() ? 0 : rank)] = pad;
  }
  return pads;
}

}  // namespace

Layer read_transpose(const Source& source) {
  require_inputs(source, 1, 1);
  const TensorSpec x = source.operand(0);
  const size_t rank = source.extents(0).size();
  Extents order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  order = Attributes(source.node).integers("perm").value_or(order);
  if (order.size() != rank) fail(source, fmt::format("perm has {} values, expected {}", order.size(), rank));
  order = axes_from_start(source, std::move(order), rank);
  if (rank < 2) return {};
  if (source.options.dynamic_batch && order.front() != 0) return refused_batch("moves");
  TensorSpec view = x;
  for (size_t d = 0; d < rank; ++d) {
    view.extents[d] = x.extents[static_cast<size_t>(order[d])];
    view.strides[d] = x.strides[static_cast<size_t>(order[d])];
  }
  view.canonicalise();
  return copied(source, view, source.spec(view.extents, x.dtype));
}

Layer read_slice(const Source& source) {
  constexpr int64_t first_with_inputs = 10;
  require_inputs(source, 1, 5);
  const TensorSpec x = source.operand(0);
  const size_t rank = source.extents(0).size();
  const auto starts = source.list("starts", 1, first_with_inputs, {}),
             ends = source.list("ends", 2, first_with_inputs, {});
  if (!starts || !ends) return refused("its starts and ends do not stand in the file");
  Extents first(starts->size());
  std::iota(first.begin(), first.end(), 0);
  std::optional<Extents> axes = source.list("axes", 3, first_with_inputs, first);
  std::optional<Extents> steps = Extents(starts->size(), 1);
  if (source.graph.opset() >= first_with_inputs) steps = source.list("steps", 4, first_with_inputs, *steps);
  if (!axes || !steps) return refused("its axes and steps do not stand in the file");
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size()) {
    fail(source, fmt::format("has {} starts, {} ends, {} axes and {} steps, expected as many of each", starts->size(),
                             ends->size(), axes->size(), steps->size()));
  }
  *axes = axes_from_start(source, std::move(*axes), rank);
  Extents begin(x.extents.size(), 0), extents = x.extents, step(x.extents.size(), 1);
  for (size_t i = 0; i < axes->size(); ++i) {
    const auto d = static_cast<size_t>((*axes)[i]);
    if ((*steps)[i] == 0) fail(source, "steps holds 0");
    if ((*steps)[i] < 0) return refused("it runs backwards, and strides are not negative");
    const Run run = run_of((*starts)[i], (*ends)[i], (*steps)[i], x.extents[d]);
    if (run.extent == 0) return refused("its result has no elements");
    if (source.options.dynamic_batch && d == 0 && run.extent != x.extents[d]) return refused_batch("cuts");
    begin[d] = run.begin;
    extents[d] = run.extent;
    step[d] = run.step;
  }
  return copied(source, region(x, begin, extents, step), source.spec(extents, x.dtype));
}

Layer read_split(const Source& source) {
  require_inputs(source, 1, 2);
  const TensorSpec x = source.operand(0);
  const auto axis = static_cast<size_t>(
      axis_from_start(source, Attributes(source.node).integer("axis", 0), source.extents(0).size()));
  const std::optional<Extents> sizes = split_sizes(source, x.extents[axis]);
  if (!sizes) return refused("its parts do not stand in the file");
  if (source.options.dynamic_batch && axis == 0 && sizes->size() > 1) return refused_batch("cuts");
  Layer layer;
  Extents begin(x.extents.size(), 0), extents = x.extents;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const std::string& output = source.node.output(static_cast<int>(i));
    extents[axis] = (*sizes)[i];
    if (extents[axis] > 0 && !output.empty() && source.graph.is_used(output)) {
      Layer part = copied(source, region(x, begin, extents), source.spec(extents, x.dtype));
      std::move(part.requests.begin(), part.requests.end(), std::back_inserter(layer.requests));
    }
    begin[axis] += extents[axis];
  }
  return layer;
}

Layer read_concat(const Source& source) {
  require_inputs(source, 1, std::numeric_limits<int>::max());
  const Attributes attributes(source.node);
  if (!attributes.has("axis")) fail(source, "attribute axis is missing");
  Extents whole = source.extents(0);
  const auto axis = static_cast<size_t>(axis_from_start(source, attributes.integer("axis", 0), whole.size()));
  const int inputs = source.node.input_size();
  for (int i = 1; i < inputs; ++i) {
    Extents part = source.has_input(i) ? source.extents(i) : Extents{};
    const int64_t extent = part.size() == whole.size() ? part[axis] : 0;
    if (part.size() == whole.size()) part[axis] = whole[axis];
    if (part != whole) {
      fail(source, fmt::format("input {} does not fit the others: only extents along the axis may differ", i));
    }
    whole[axis] += extent;
  }
  (void)count_elements(whole);
  if (inputs == 1) return {};
  if (source.options.dynamic_batch && axis == 0) return refused_batch("joins tensors along");
  const TensorSpec y = source.spec(whole, source.operand(0).dtype);
  Layer layer;
  Extents begin(whole.size(), 0);
  for (int i = 0; i < inputs; ++i) {
    TensorTransform transform;
    transform.x = source.operand(i);
    transform.y = region(y, begin, transform.x.extents);
    transform.dynamic_batch = source.options.dynamic_batch;
    layer.requests.push_back(transform.request());
    begin[axis] += transform.x.extents[axis];
  }
  return layer;
}

Layer read_pad(const Source& source) {
  require_inputs(source, 1, 4);
  const std::string mode = Attributes(source.node).word("mode", "constant");
  if (mode != "constant") return refused(fmt::format("it pads by '{}', and constants are covered", mode));
  if (source.has_input(2) && !source.graph.is_constant(source.node.input(2))) return refused("its padding is computed");
  TensorTransform transform;
  const TensorSpec x = source.operand(0);
  const size_t rank = source.extents(0).size();
  const std::optional<Extents> pads = pads_of(source, rank);
  if (!pads) return refused("its pads do not stand in the file");
  Extents begin(x.extents.size(), 0), kept = x.extents, padded = x.extents;
  transform.pad_begin = transform.pad_end = begin;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t before = (*pads)[d], behind = (*pads)[rank + d];
    if (source.options.dynamic_batch && d == 0 && (before != 0 || behind != 0)) return refused_batch("pads");
    transform.pad_begin[d] = std::max<int64_t>(before, 0);
    transform.pad_end[d] = std::max<int64_t>(behind, 0);
    begin[d] = transform.pad_begin[d] - before;
    kept[d] += std::min<int64_t>(before, 0) + std::min<int64_t>(behind, 0);
    padded[d] += before + behind;
    if (kept[d] < 1) return refused("it takes all elements away");
  }
  (void)count_elements(padded);
  transform.x = region(x, begin, kept);
  transform.y = source.spec(padded, x.dtype);
  if (kept == padded) return copied(source, transform.x, transform.y);
  transform.dynamic_batch = source.options.dynamic_batch;
  return asked(transform.request());
}

Layer read_expand(const Source& source) {
  require_inputs(source, 2, 2);
  const auto shape = source.graph.partial_shape(source.node.output(0));
  TensorSpec x = source.operand(0);
  const bool is_known = shape && std::all_of(shape->begin(), shape->end(), [](int64_t extent) { return extent > 0; });
  if (!is_known || shape->size() > 5 || shape->size() < x.extents.size()) {
    return refused("the shape that it expands to does not stand in the file");
  }
  if (precedes_batch(source, 0, shape->size())) return refused_batch("puts dimensions before");
  (void)count_elements(*shape);
  const TensorSpec y = source.spec(*shape, x.dtype);
  x = with_rank(std::move(x), shape->size());
  for (size_t d = 0; d < shape->size(); ++d) {
    if (x.extents[d] != 1 && x.extents[d] != (*shape)[d]) {
      fail(source, fmt::format("{} does not expand to {}", fmt::join(x.extents, "x"), fmt::join(*shape, "x")));
    }
  }
  if (x.extents == *shape) return {};
  return copied(source, with_batch(source, std::move(x), shape->front()), y);
}

Layer read_cast(const Source& source) {
  require_inputs(source, 1, 1);
  const auto type = static_cast<int32_t>(Attributes(source.node).integer("to", onnx::TensorProto::UNDEFINED));
  const std::optional<DType> storage = storage_of(type, source.options);
  if (!storage || !is_floating(*storage)) return refused("it makes integers of its elements");
  const TensorSpec x = source.operand(0);
  return copied(source, x, source.spec(x.extents, *storage));
}

}  // namespace kiln::onnx_frontend
