#include "onnx/host_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "kiln/reference/convert.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// The device computes with them.
struct TooMany {};

HostTensor empty_of(int32_t type, Extents extents) {
  HostTensor tensor{type, std::move(extents), {}, {}};
  const int64_t elements = graph::count_elements(tensor.extents);
  if (!is_few(type, elements)) throw TooMany{};
  if (tensor.is_integer()) {
    tensor.integers.resize(static_cast<size_t>(elements));
  } else {
    tensor.reals.resize(static_cast<size_t>(elements));
  }
  return tensor;
}

double rounded(int32_t type, double value) {
  if (type == onnx::TensorProto::FLOAT) return static_cast<double>(static_cast<float>(value));
  if (type == onnx::TensorProto::FLOAT16) return reference::round_to(DType::f16, value);
  if (type == onnx::TensorProto::BFLOAT16) return reference::round_to(DType::bf16, value);
  return value;
}

Extents strides_of(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(extents[d], 1);
  return strides;
}

/// Calls `see` with the coordinates of each element, in logical order.
void for_each_coordinate(const Extents& extents, const std::function<void(const Extents&)>& see) {
  if (graph::count_elements(extents) == 0) return;
  Extents at(extents.size(), 0);
  while (true) {
    see(at);
    size_t d = extents.size();
    while (d > 0 && ++at[d - 1] == extents[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

/// A tensor of `extents` whose element at each place is that of `source` at flat position `from`(place).
HostTensor taken(const HostTensor& source, const Extents& extents, const std::function<int64_t(const Extents&)>& from) {
  HostTensor result = empty_of(source.type, extents);
  size_t i = 0;
  for_each_coordinate(extents, [&](const Extents& at) {
    const auto position = static_cast<size_t>(from(at));
    if (source.is_integer()) {
      result.integers[i++] = source.integers[position];
    } else {
      result.reals[i++] = source.reals[position];
    }
  });
  return result;
}

HostTensor repeated(const HostTensor& source, const Extents& extents) {
  const Extents strides = strides_of(source.extents);
  const size_t missing = extents.size() - source.extents.size();
  return taken(source, extents, [&](const Extents& at) {
    int64_t position = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      position += source.extents[d] == 1 ? 0 : at[missing + d] * strides[d];
    }
    return position;
  });
}

int64_t divided(const Node& node, int64_t a, int64_t b) {
  if (b == 0) node.fail("divides by 0");
  return a / b;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (int64_t i = 0; i < exponent && i < 64; ++i) result *= base;
  return result;
}

/// Arithmetic of two inputs that repeat.
struct Binary {
  std::function<int64_t(const Node&, int64_t, int64_t)> integers;
  std::function<double(double, double)> reals;
  bool gives_flags = false;
};

const std::map<std::string, Binary>& binaries() {
  static const std::map<std::string, Binary> all = {
      {"Add", {[](auto&, int64_t a, int64_t b) { return a + b; }, [](double a, double b) { return a + b; }}},
      {"Sub", {[](auto&, int64_t a, int64_t b) { return a - b; }, [](double a, double b) { return a - b; }}},
      {"Mul", {[](auto&, int64_t a, int64_t b) { return a * b; }, [](double a, double b) { return a * b; }}},
      {"Div", {divided, [](double a, double b) { return a / b; }}},
      {"Pow",
       {[](auto&, int64_t a, int64_t b) { return power(a, b); }, [](double a, double b) { return std::pow(a, b); }}},
      {"Min",
       {[](auto&, int64_t a, int64_t b) { return std::min(a, b); }, [](double a, double b) { return std::min(a, b); }}},
      {"Max",
       {[](auto&, int64_t a, int64_t b) { return std::max(a, b); }, [](double a, double b) { return std::max(a, b); }}},
      {"Mod",
       {[](const Node& node, int64_t a, int64_t b) { return ((a - divided(node, a, b) * b) + b) % b; },
        [](double a, double b) { return std::fmod(a, b); }}},
      {"Equal",
       {[](auto&, int64_t a, int64_t b) { return int64_t{a == b}; },
        [](double a, double b) { return a == b ? 1.0 : 0.0; }, true}},
      {"Less",
       {[](auto&, int64_t a, int64_t b) { return int64_t{a < b}; },
        [](double a, double b) { return a < b ? 1.0 : 0.0; }, true}},
      {"LessOrEqual",
       {[](auto&, int64_t a, int64_t b) { return int64_t{a <= b}; },
        [](double a, double b) { return a <= b ? 1.0 : 0.0; }, true}},
      {"Greater",
       {[](auto&, int64_t a, int64_t b) { return int64_t{a > b}; },
        [](double a, double b) { return a > b ? 1.0 : 0.0; }, true}},
      {"GreaterOrEqual",
       {[](auto&, int64_t a, int64_t b) { return int64_t{a >= b}; },
        [](double a, double b) { return a >= b ? 1.0 : 0.0; }, true}},
      {"And", {[](auto&, int64_t a, int64_t b) { return int64_t{a != 0 && b != 0}; }, nullptr, true}},
      {"Or", {[](auto&, int64_t a, int64_t b) { return int64_t{a != 0 || b != 0}; }, nullptr, true}},
  };
  return all;
}

void compute_binary(Node& node) {
  node.require_inputs(2, 2);
  const Binary& rule = binaries().at(node.type());
  const Extents extents = broadcast(node, {node.extents(0), node.extents(1)});
  const HostTensor a = repeated(*node.host(0), extents), b = repeated(*node.host(1), extents);
  const int32_t type = rule.gives_flags ? int32_t{onnx::TensorProto::BOOL} : a.type;
  HostTensor result = empty_of(type, extents);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a.is_integer()) {
      result.integers[i] = rule.integers(node, a.integers[i], b.integers[i]);
    } else if (rule.gives_flags) {
      result.integers[i] = static_cast<int64_t>(rule.reals(a.reals[i], b.reals[i]));
    } else {
      result.reals[i] = rounded(type, rule.reals(a.reals[i], b.reals[i]));
    }
  }
  node.give_host(std::move(result));
}

const std::map<std::string, double (*)(double)>& unaries() {
  static const std::map<std::string, double (*)(double)> all = {{"Neg", [](double a) { return -a; }},
                                                                {"Abs", [](double a) { return std::abs(a); }},
                                                                {"Floor", [](double a) { return std::floor(a); }},
                                                                {"Ceil", [](double a) { return std::ceil(a); }},
                                                                {"Round", [](double a) { return std::nearbyint(a); }},
                                                                {"Sqrt", [](double a) { return std::sqrt(a); }},
                                                                {"Exp", [](double a) { return std::exp(a); }},
                                                                {"Log", [](double a) { return std::log(a); }},
                                                                {"Reciprocal", [](double a) { return 1 / a; }},
                                                                {"Not", [](double a) { return a == 0 ? 1.0 : 0.0; }}};
  return all;
}

void compute_unary(Node& node) {
  node.require_inputs(1, 1);
  HostTensor result = *node.host(0);
  const auto function = unaries().at(node.type());
  for (int64_t& value : result.integers) value = static_cast<int64_t>(function(static_cast<double>(value)));
  for (double& value : result.reals) value = rounded(result.type, function(value));
  node.give_host(std::move(result));
}

void compute_shape(Node& node) {
  node.require_inputs(1, 1);
  const Extents& x = node.extents(0);
  const auto rank = static_cast<int64_t>(x.size());
  const auto inside = [&](int64_t d) { return std::clamp<int64_t>(d < 0 ? d + rank : d, 0, rank); };
  const int64_t start = inside(node.attributes().integer("start", 0)),
                end = inside(node.attributes().integer("end", rank));
  HostTensor result{onnx::TensorProto::INT64, {}, {}, {}};
  for (int64_t d = start; d < end; ++d) result.integers.push_back(x[static_cast<size_t>(d)]);
  result.extents = {std::ssize(result.integers)};
  node.give_host(std::move(result));
}

void compute_size(Node& node) {
  node.require_inputs(1, 1);
  node.give_host({onnx::TensorProto::INT64, {}, {graph::count_elements(node.extents(0))}, {}});
}

void compute_range(Node& node) {
  node.require_inputs(3, 3);
  const double start = node.number(0, "start"), limit = node.number(1, "limit"), step = node.number(2, "step");
  if (step == 0) node.fail("its step is 0");
  const auto count = static_cast<int64_t>(std::max(0.0, std::ceil((limit - start) / step)));
  HostTensor result = empty_of(node.element_type(0), {count});
  for (int64_t i = 0; i < count; ++i) {
    const double value = start + static_cast<double>(i) * step;
    if (result.is_integer()) {
      result.integers[static_cast<size_t>(i)] = static_cast<int64_t>(value);
    } else {
      result.reals[static_cast<size_t>(i)] = rounded(result.type, value);
    }
  }
  node.give_host(std::move(result));
}

void compute_gather(Node& node) {
  node.require_inputs(2, 2);
  const HostTensor &source = *node.host(0), &indices = *node.host(1);
  const size_t axis = node.axis(node.attributes().integer("axis", 0), source.extents.size());
  const int64_t extent = source.extents[axis];
  const size_t inner_rank = indices.extents.size();
  Extents extents(source.extents.begin(), source.extents.begin() + static_cast<std::ptrdiff_t>(axis));
  extents.insert(extents.end(), indices.extents.begin(), indices.extents.end());
  extents.insert(extents.end(), source.extents.begin() + static_cast<std::ptrdiff_t>(axis) + 1, source.extents.end());
  const Extents strides = strides_of(source.extents), index_strides = strides_of(indices.extents);
  node.give_host(taken(source, extents, [&](const Extents& at) {
    int64_t which = 0, position = 0;
    for (size_t d = 0; d < inner_rank; ++d) which += at[axis + d] * index_strides[d];
    int64_t index = indices.integers[static_cast<size_t>(which)];
    index += index < 0 ? extent : 0;
    if (index < 0 || index >= extent) node.fail(fmt::format("index {} is outside of {} elements", index, extent));
    for (size_t d = 0; d < strides.size(); ++d) {
      const int64_t coordinate = d < axis ? at[d] : d == axis ? index : at[d + inner_rank - 1];
      position += coordinate * strides[d];
    }
    return position;
  }));
}

void compute_concat(Node& node) {
  const size_t axis = node.axis(node.attributes().integer("axis", 0), node.rank());
  HostTensor result{node.element_type(0), node.extents(0), {}, {}};
  result.extents[axis] = 0;
  for (int i = 0; i < node.inputs(); ++i) result.extents[axis] += node.extents(i).at(axis);
  result = empty_of(result.type, result.extents);
  const Extents strides = strides_of(result.extents);
  int64_t begin = 0;
  for (int i = 0; i < node.inputs(); ++i) {
    const HostTensor& part = *node.host(i);
    size_t element = 0;
    for_each_coordinate(part.extents, [&](const Extents& at) {
      int64_t position = begin * strides[axis];
      for (size_t d = 0; d < at.size(); ++d) position += at[d] * strides[d];
      if (part.is_integer()) {
        result.integers.at(static_cast<size_t>(position)) = part.integers[element++];
      } else {
        result.reals.at(static_cast<size_t>(position)) = part.reals[element++];
      }
    });
    begin += part.extents[axis];
  }
  node.give_host(std::move(result));
}

/// By ONNX's rules for any step: positions outside are moved to the border.
void compute_slice(Node& node) {
  constexpr int64_t first_with_inputs = 10;
  node.require_inputs(1, 5);
  const HostTensor& source = *node.host(0);
  const std::vector<int64_t> starts = node.list("starts", 1, first_with_inputs, {}),
                             ends = node.list("ends", 2, first_with_inputs, {});
  std::vector<int64_t> counted(starts.size());
  std::iota(counted.begin(), counted.end(), int64_t{0});
  const std::vector<size_t> axes = node.axes(node.list("axes", 3, first_with_inputs, counted), source.extents.size());
  std::vector<int64_t> steps(starts.size(), 1);
  if (node.opset() >= first_with_inputs && node.has(4)) steps = node.integers(4, "steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    node.fail("has starts, ends, axes and steps of different numbers");
  }
  Extents begin(source.extents.size(), 0), extents = source.extents, step(source.extents.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = source.extents[axes[i]], by = steps[i];
    if (by == 0) node.fail("steps holds 0");
    const auto from_start = [&](int64_t position) { return position < 0 ? position + extent : position; };
    const int64_t least = by > 0 ? 0 : -1, most = by > 0 ? extent : extent - 1;
    const int64_t first = std::clamp(from_start(starts[i]), by > 0 ? int64_t{0} : int64_t{-1}, most);
    // An end far below zero means "before the first element".
    const int64_t last = std::clamp(ends[i] < 0 && ends[i] + extent < 0 ? least : from_start(ends[i]), least, most);
    const int64_t span = by > 0 ? last - first : first - last, stride = std::abs(by);
    begin[axes[i]] = first;
    step[axes[i]] = by;
    extents[axes[i]] = span > 0 ? (span - 1) / stride + 1 : 0;
  }
  const Extents strides = strides_of(source.extents);
  node.give_host(taken(source, extents, [&](const Extents& at) {
    int64_t position = 0;
    for (size_t d = 0; d < at.size(); ++d) position += (begin[d] + at[d] * step[d]) * strides[d];
    return position;
  }));
}

void compute_transpose(Node& node) {
  const HostTensor& source = *node.host(0);
  const size_t rank = source.extents.size();
  std::vector<int64_t> order(rank);
  std::iota(order.rbegin(), order.rend(), int64_t{0});
  const std::vector<size_t> axes = node.axes(node.attributes().integers("perm").value_or(order), rank);
  if (axes.size() != rank) node.fail("perm has not one value for each dimension");
  Extents extents;
  for (const size_t d : axes) extents.push_back(source.extents[d]);
  const Extents strides = strides_of(source.extents);
  node.give_host(taken(source, extents, [&](const Extents& at) {
    int64_t position = 0;
    for (size_t d = 0; d < rank; ++d) position += at[d] * strides[axes[d]];
    return position;
  }));
}

void compute_expand(Node& node) {
  node.require_inputs(2, 2);
  node.give_host(repeated(*node.host(0), broadcast(node, {node.extents(0), node.integers(1, "extents")})));
}

void compute_cast(Node& node) {
  const auto type = static_cast<int32_t>(node.attributes().integer("to", onnx::TensorProto::UNDEFINED));
  (void)node.values().storage_of(type);
  const HostTensor& source = *node.host(0);
  HostTensor result = empty_of(type, source.extents);
  for (size_t i = 0; i < source.size(); ++i) {
    if (!result.is_integer()) {
      result.reals[i] = rounded(type, source.real(i));
    } else if (type == onnx::TensorProto::BOOL) {
      result.integers[i] = source.real(i) != 0 ? 1 : 0;
    } else {
      result.integers[i] = source.is_integer() ? source.integers[i] : static_cast<int64_t>(source.reals[i]);
    }
  }
  node.give_host(std::move(result));
}

void compute_where(Node& node) {
  node.require_inputs(3, 3);
  const Extents extents = broadcast(node, {node.extents(0), node.extents(1), node.extents(2)});
  const HostTensor chosen = repeated(*node.host(0), extents), b = repeated(*node.host(1), extents),
                   c = repeated(*node.host(2), extents);
  HostTensor result = b;
  for (size_t i = 0; i < result.size(); ++i) {
    if (chosen.integers[i] != 0) continue;
    if (result.is_integer()) {
      result.integers[i] = c.integers[i];
    } else {
      result.reals[i] = c.reals[i];
    }
  }
  node.give_host(std::move(result));
}

/// Of all elements along one axis, or along all of them.
void compute_reduction(Node& node) {
  const HostTensor& source = *node.host(0);
  if (!source.is_integer() || source.extents.size() != 1) refuse("it reduces constants that are no list of integers");
  const bool keep = node.attributes().integer("keepdims", 1) != 0;
  int64_t value = node.type() == "ReduceProd" ? 1 : 0;
  if (node.type() == "ReduceMax") value = *std::max_element(source.integers.begin(), source.integers.end());
  if (node.type() == "ReduceMin") value = *std::min_element(source.integers.begin(), source.integers.end());
  for (const int64_t each : source.integers) {
    if (node.type() == "ReduceProd") value *= each;
    if (node.type() == "ReduceSum") value += each;
  }
  node.give_host({source.type, keep ? Extents{1} : Extents{}, {value}, {}});
}

void compute_view(Node& node) {
  HostTensor result = *node.host(0);
  result.extents = extents_of_view(node);
  node.give_host(std::move(result));
}

void compute_non_zero(Node& node) {
  const HostTensor& source = *node.host(0);
  std::vector<Extents> found;
  size_t i = 0;
  for_each_coordinate(source.extents, [&](const Extents& at) {
    if (source.real(i++) != 0) found.push_back(at);
  });
  const size_t rank = source.extents.size();
  HostTensor result = empty_of(onnx::TensorProto::INT64, {static_cast<int64_t>(rank), std::ssize(found)});
  for (size_t d = 0; d < rank; ++d) {
    for (size_t n = 0; n < found.size(); ++n) result.integers[d * found.size() + n] = found[n][d];
  }
  node.give_host(std::move(result));
}

/// Nodes that read the extents of their input, whatever is in it.
const std::map<std::string, void (*)(Node&)>& of_extents() {
  static const std::map<std::string, void (*)(Node&)> all = {{"Shape", compute_shape}, {"Size", compute_size}};
  return all;
}

const std::map<std::string, void (*)(Node&)>& of_elements() {
  static const std::map<std::string, void (*)(Node&)> all = [] {
    std::map<std::string, void (*)(Node&)> table = {
        {"Range", compute_range},         {"Gather", compute_gather},       {"Concat", compute_concat},
        {"Slice", compute_slice},         {"Transpose", compute_transpose}, {"Expand", compute_expand},
        {"Cast", compute_cast},           {"Where", compute_where},         {"ReduceProd", compute_reduction},
        {"ReduceSum", compute_reduction}, {"ReduceMax", compute_reduction}, {"ReduceMin", compute_reduction},
        {"NonZero", compute_non_zero},    {"Identity", compute_view},       {"Reshape", compute_view},
        {"Flatten", compute_view},        {"Squeeze", compute_view},        {"Unsqueeze", compute_view}};
    for (const auto& [name, rule] : binaries()) table[name] = compute_binary;
    for (const auto& [name, rule] : unaries()) table[name] = compute_unary;
    return table;
  }();
  return all;
}

}  // namespace

bool computed_on_host(Node& node) {
  if (const auto found = of_extents().find(node.type()); found != of_extents().end()) {
    found->second(node);
    return true;
  }
  const auto found = of_elements().find(node.type());
  if (found == of_elements().end() || node.inputs() == 0) return false;
  for (int i = 0; i < node.inputs(); ++i) {
    if (!node.has(i)) continue;
    const HostTensor* tensor = node.host(i);
    if (tensor == nullptr || !is_few(tensor->type, std::ssize(tensor->integers) + std::ssize(tensor->reals)))
      return false;
  }
  const HostTensor& first = *node.host(0);
  if (!first.is_integer() && (node.type() == "And" || node.type() == "Or" || node.type() == "Not")) return false;
  if (node.type().starts_with("Reduce") && (!first.is_integer() || first.extents.size() != 1 || first.size() == 0)) {
    return false;
  }
  if (binaries().contains(node.type()) && node.inputs() != 2) return false;
  try {
    found->second(node);
  } catch (const TooMany&) {
    return false;
  }
  return true;
}

}  // namespace kiln::onnx_frontend
