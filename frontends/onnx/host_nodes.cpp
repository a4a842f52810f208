#include "onnx/host_nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "kiln/base/checked.h"
#include "kiln/reference/convert.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

using Integers = HostTensor::Integers;
using Reals = HostTensor::Reals;

/// The device computes with them.
struct TooMany {};

constexpr int64_t steps_of_a_coordinate = 16;  // as the budget counts them: see for_each_coordinate()

HostTensor empty_of(const Node& node, int32_t type, Extents extents) {
  const int64_t elements = graph::count_elements(extents);
  if (!is_few(type, elements)) throw TooMany{};
  node.budget().take_elements(elements, steps_of_a_coordinate);
  return {node.budget(), type, std::move(extents)};
}

double rounded(int32_t type, double value) {
  if (type == onnx::TensorProto::FLOAT) return static_cast<double>(static_cast<float>(value));
  if (type == onnx::TensorProto::FLOAT16) return reference::round_to(DType::f16, value);
  if (type == onnx::TensorProto::BFLOAT16) return reference::round_to(DType::bf16, value);
  return value;
}

/// A result of integers; refuses the node where there is none, or its type does not hold it.
int64_t held(int32_t type, std::optional<int64_t> value) {
  const IntegerRange range = range_of(type);
  if (!value || *value < range.least || *value > range.largest) {
    refuse(fmt::format("a result of its constants is beyond {}", type_name(type)));
  }
  return *value;
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

/// Calls `with` with the elements of both, which are of one kind.
template <typename With>
void with_elements(HostTensor& to, const HostTensor& from, const With& with) {
  if (to.is_integer()) {
    with(to.integers(), from.integers());
  } else {
    with(to.reals(), from.reals());
  }
}

/// A tensor of `extents` whose element at each place is that of `source` at flat position `from`(place).
HostTensor taken(const Node& node, const HostTensor& source, const Extents& extents,
                 const std::function<int64_t(const Extents&)>& from) {
  HostTensor result = empty_of(node, source.type(), extents);
  with_elements(result, source, [&](auto& to, const auto& elements) {
    size_t i = 0;
    for_each_coordinate(extents, [&](const Extents& at) { to[i++] = elements.at(static_cast<size_t>(from(at))); });
  });
  return result;
}

HostTensor repeated(const Node& node, const HostTensor& source, const Extents& extents) {
  const Extents strides = strides_of(source.extents());
  const size_t missing = extents.size() - source.rank();
  return taken(node, source, extents, [&](const Extents& at) {
    int64_t position = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      position += source.extents()[d] == 1 ? 0 : at[missing + d] * strides[d];
    }
    return position;
  });
}

std::optional<int64_t> divided(const Node& node, int64_t a, int64_t b) {
  if (b == 0) node.fail("divides by 0");
  return checked_divide(a, b);
}

/// With the sign of b, or that of a where the node says fmod.
std::optional<int64_t> remainder(const Node& node, int64_t a, int64_t b) {
  if (b == 0) node.fail("divides by 0");
  const int64_t rest = b == -1 ? 0 : a % b;
  const bool as_c = node.attributes().integer("fmod", 0) != 0;
  return as_c || rest == 0 || (rest < 0) == (b < 0) ? rest : rest + b;
}

/// Towards zero where the exponent is negative.
std::optional<int64_t> power(const Node& node, int64_t base, int64_t exponent) {
  if (base == 1 || exponent == 0) return 1;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (base == 0 && exponent < 0) node.fail("raises 0 to a negative power");
  if (base == 0 || exponent < 0) return 0;
  std::optional<int64_t> result = 1;
  for (int64_t i = 0; result && i < exponent; ++i) result = checked_multiply(*result, base);
  return result;
}

/// The base decides the result's type, whatever type the exponent has.
void compute_power(Node& node) {
  const Extents extents = broadcast(node, {node.extents(0), node.extents(1)});
  const HostTensor base = repeated(node, *node.host(0), extents), exponent = repeated(node, *node.host(1), extents);
  const int32_t type = base.type();
  HostTensor result = empty_of(node, type, extents);
  for (size_t i = 0; i < base.size(); ++i) {
    if (!base.is_integer()) {
      result.reals()[i] = rounded(type, std::pow(base.reals()[i], exponent.real(i)));
    } else if (exponent.is_integer()) {
      result.integers()[i] = held(type, power(node, base.integers()[i], exponent.integers()[i]));
    } else {
      result.integers()[i] = held(type, checked_truncate(std::pow(base.real(i), exponent.reals()[i])));
    }
  }
  node.give_host(std::move(result));
}

/// Arithmetic of two inputs that repeat.
struct Binary {
  std::function<std::optional<int64_t>(const Node&, int64_t, int64_t)> integers;
  std::function<double(double, double)> reals{};
  bool gives_flags = false;
};

const std::map<std::string, Binary>& binaries() {
  static const std::map<std::string, Binary> all = {
      {"Add",
       {[](auto&, int64_t a, int64_t b) { return checked_add(a, b); }, [](double a, double b) { return a + b; }}},
      {"Sub",
       {[](auto&, int64_t a, int64_t b) { return checked_subtract(a, b); }, [](double a, double b) { return a - b; }}},
      {"Mul",
       {[](auto&, int64_t a, int64_t b) { return checked_multiply(a, b); }, [](double a, double b) { return a * b; }}},
      {"Div", {divided, [](double a, double b) { return a / b; }}},
      {"Min",
       {[](auto&, int64_t a, int64_t b) { return std::min(a, b); }, [](double a, double b) { return std::min(a, b); }}},
      {"Max",
       {[](auto&, int64_t a, int64_t b) { return std::max(a, b); }, [](double a, double b) { return std::max(a, b); }}},
      {"Mod", {remainder, [](double a, double b) { return std::fmod(a, b); }}},
      {"Equal",
       {.integers = [](auto&, int64_t a, int64_t b) { return int64_t{a == b}; },
        .reals = [](double a, double b) { return a == b ? 1.0 : 0.0; },
        .gives_flags = true}},
      {"Less",
       {.integers = [](auto&, int64_t a, int64_t b) { return int64_t{a < b}; },
        .reals = [](double a, double b) { return a < b ? 1.0 : 0.0; },
        .gives_flags = true}},
      {"LessOrEqual",
       {.integers = [](auto&, int64_t a, int64_t b) { return int64_t{a <= b}; },
        .reals = [](double a, double b) { return a <= b ? 1.0 : 0.0; },
        .gives_flags = true}},
      {"Greater",
       {.integers = [](auto&, int64_t a, int64_t b) { return int64_t{a > b}; },
        .reals = [](double a, double b) { return a > b ? 1.0 : 0.0; },
        .gives_flags = true}},
      {"GreaterOrEqual",
       {.integers = [](auto&, int64_t a, int64_t b) { return int64_t{a >= b}; },
        .reals = [](double a, double b) { return a >= b ? 1.0 : 0.0; },
        .gives_flags = true}},
      {"And", {.integers = [](auto&, int64_t a, int64_t b) { return int64_t{a != 0 && b != 0}; }, .gives_flags = true}},
      {"Or", {.integers = [](auto&, int64_t a, int64_t b) { return int64_t{a != 0 || b != 0}; }, .gives_flags = true}},
  };
  return all;
}

void compute_binary(Node& node) {
  const Binary& rule = binaries().at(node.type());
  const Extents extents = broadcast(node, {node.extents(0), node.extents(1)});
  const HostTensor a = repeated(node, *node.host(0), extents), b = repeated(node, *node.host(1), extents);
  const int32_t type = rule.gives_flags ? int32_t{onnx::TensorProto::BOOL} : a.type();
  HostTensor result = empty_of(node, type, extents);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a.is_integer()) {
      result.integers()[i] = held(type, rule.integers(node, a.integers()[i], b.integers()[i]));
    } else if (rule.gives_flags) {
      result.integers()[i] = rule.reals(a.reals()[i], b.reals()[i]) != 0 ? 1 : 0;
    } else {
      result.reals()[i] = rounded(type, rule.reals(a.reals()[i], b.reals()[i]));
    }
  }
  node.give_host(std::move(result));
}

/// A function of one element, of integers, of real numbers, or of both.
struct Unary {
  std::optional<int64_t> (*integers)(int64_t);
  double (*reals)(double);
};

const std::map<std::string, Unary>& unaries() {
  static const std::map<std::string, Unary> all = {
      {"Neg", {[](int64_t a) { return checked_subtract(0, a); }, [](double a) { return -a; }}},
      {"Abs",
       {[](int64_t a) { return a < 0 ? checked_subtract(0, a) : std::optional(a); },
        [](double a) { return std::abs(a); }}},
      {"Floor", {nullptr, [](double a) { return std::floor(a); }}},
      {"Ceil", {nullptr, [](double a) { return std::ceil(a); }}},
      {"Round", {nullptr, [](double a) { return std::nearbyint(a); }}},
      {"Sqrt", {nullptr, [](double a) { return std::sqrt(a); }}},
      {"Exp", {nullptr, [](double a) { return std::exp(a); }}},
      {"Log", {nullptr, [](double a) { return std::log(a); }}},
      {"Reciprocal", {nullptr, [](double a) { return 1 / a; }}},
      {"Not", {[](int64_t a) { return std::optional<int64_t>(a == 0 ? 1 : 0); }, nullptr}}};
  return all;
}

void compute_unary(Node& node) {
  HostTensor result = node.host(0)->copy(node.budget());
  const Unary& rule = unaries().at(node.type());
  if (result.is_integer()) {
    for (int64_t& value : result.integers()) value = held(result.type(), rule.integers(value));
  } else {
    for (double& value : result.reals()) value = rounded(result.type(), rule.reals(value));
  }
  node.give_host(std::move(result));
}

void compute_shape(Node& node) {
  node.require_inputs(1, 1);
  const Extents& x = node.extents(0);
  const auto rank = static_cast<int64_t>(x.size());
  const auto inside = [&](int64_t d) { return std::clamp<int64_t>(d < 0 ? d + rank : d, 0, rank); };
  const int64_t start = inside(node.attributes().integer("start", 0)),
                end = inside(node.attributes().integer("end", rank));
  Integers extents;
  for (int64_t d = start; d < end; ++d) extents.push_back(x[static_cast<size_t>(d)]);
  const int64_t count = std::ssize(extents);
  node.give_host({onnx::TensorProto::INT64, {count}, std::move(extents)});
}

void compute_size(Node& node) {
  node.require_inputs(1, 1);
  node.give_host({onnx::TensorProto::INT64, {}, Integers{graph::count_elements(node.extents(0))}});
}

/// A list of `count` elements; nothing where there is no such count.
HostTensor list_of(const Node& node, std::optional<int64_t> count) {
  if (!count) node.fail("its range has no end that 64 bits hold");
  if (*count > graph::most_elements) throw TooMany{};
  return empty_of(node, node.element_type(0), {*count});
}

void compute_range_of_integers(Node& node) {
  const int64_t start = node.integer(0, "start"), limit = node.integer(1, "limit"), step = node.integer(2, "step");
  if (step == 0) node.fail("its step is 0");
  const bool is_empty = step > 0 ? start >= limit : start <= limit;
  const std::optional<int64_t> span = checked_subtract(limit, start);
  const std::optional<int64_t> steps = span ? checked_divide(*span, step) : std::nullopt;
  HostTensor result = list_of(node, is_empty ? 0 : !steps ? steps : *steps + (*span % step == 0 ? 0 : 1));
  int64_t value = start;
  for (int64_t& element : result.integers()) {
    element = held(result.type(), value);
    value = checked_add(value, step).value_or(value);  // behind the last one
  }
  node.give_host(std::move(result));
}

void compute_range(Node& node) {
  if (node.is_integer(0)) return compute_range_of_integers(node);
  const double start = node.number(0, "start"), limit = node.number(1, "limit"), step = node.number(2, "step");
  if (step == 0) node.fail("its step is 0");
  const double steps = std::ceil((limit - start) / step);
  HostTensor result = list_of(node, steps < 0 ? 0 : checked_truncate(steps));
  double position = 0;
  for (double& element : result.reals()) {
    element = rounded(result.type(), start + position * step);
    position += 1;
  }
  node.give_host(std::move(result));
}

void compute_gather(Node& node) {
  const HostTensor &source = *node.host(0), &indices = *node.host(1);
  const size_t axis = node.axis(node.attributes().integer("axis", 0), source.rank());
  const int64_t extent = source.extents()[axis];
  const size_t inner_rank = indices.rank();
  const auto split = source.extents().begin() + static_cast<std::ptrdiff_t>(axis);
  Extents extents(source.extents().begin(), split);
  extents.insert(extents.end(), indices.extents().begin(), indices.extents().end());
  extents.insert(extents.end(), split + 1, source.extents().end());
  const Extents strides = strides_of(source.extents()), index_strides = strides_of(indices.extents());
  node.give_host(taken(node, source, extents, [&](const Extents& at) {
    int64_t which = 0, position = 0;
    for (size_t d = 0; d < inner_rank; ++d) which += at[axis + d] * index_strides[d];
    int64_t index = indices.integers().at(static_cast<size_t>(which));
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
  Extents whole = node.extents(0);
  whole[axis] = 0;
  for (int i = 0; i < node.inputs(); ++i) {
    const Extents& part = node.extents(i);
    bool fits = part.size() == whole.size();
    for (size_t d = 0; fits && d < whole.size(); ++d) fits = d == axis || part[d] == whole[d];
    if (!fits) {
      node.fail(fmt::format("input {} is {}, and input 0 is {}: only extents along axis {} may differ", i,
                            fmt::join(part, "x"), fmt::join(node.extents(0), "x"), axis));
    }
    whole[axis] += part[axis];
    if (whole[axis] > graph::most_elements) node.fail("its parts have more than 2^40 elements together");
  }
  HostTensor result = empty_of(node, node.element_type(0), whole);
  const Extents strides = strides_of(whole);
  int64_t begin = 0;
  for (int i = 0; i < node.inputs(); ++i) {
    const HostTensor& part = *node.host(i);
    with_elements(result, part, [&](auto& to, const auto& from) {
      size_t element = 0;
      for_each_coordinate(part.extents(), [&](const Extents& at) {
        int64_t position = begin * strides[axis];
        for (size_t d = 0; d < at.size(); ++d) position += at[d] * strides[d];
        to.at(static_cast<size_t>(position)) = from[element++];
      });
    });
    begin += part.extents()[axis];
  }
  node.give_host(std::move(result));
}

/// By ONNX's rules for any step: positions outside are moved to the border.
void compute_slice(Node& node) {
  constexpr int64_t first_with_inputs = 10;
  const HostTensor& source = *node.host(0);
  const std::vector<int64_t> starts = node.list("starts", 1, first_with_inputs, {}),
                             ends = node.list("ends", 2, first_with_inputs, {});
  std::vector<int64_t> counted(starts.size());
  std::iota(counted.begin(), counted.end(), int64_t{0});
  const std::vector<size_t> axes = node.axes(node.list("axes", 3, first_with_inputs, counted), source.rank());
  std::vector<int64_t> steps(starts.size(), 1);
  if (node.opset() >= first_with_inputs && node.has(4)) steps = node.list(4, "steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    node.fail("has starts, ends, axes and steps of different numbers");
  }
  Extents begin(source.rank(), 0), extents = source.extents(), step(source.rank(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = source.extents()[axes[i]];
    // No element is farther from another than that.
    const int64_t by = std::clamp(steps[i], -graph::most_elements, graph::most_elements);
    if (by == 0) node.fail("steps holds 0");
    const auto from_start = [&](int64_t position) { return position < 0 ? position + extent : position; };
    const int64_t least = by > 0 ? 0 : -1, most = by > 0 ? extent : extent - 1;
    const int64_t first = std::clamp(from_start(starts[i]), least, most);
    // An end far below zero means "before the first element".
    const int64_t last = std::clamp(ends[i] < 0 && ends[i] + extent < 0 ? least : from_start(ends[i]), least, most);
    const int64_t span = by > 0 ? last - first : first - last, stride = std::abs(by);
    begin[axes[i]] = first;
    step[axes[i]] = by;
    extents[axes[i]] = span > 0 ? (span - 1) / stride + 1 : 0;
  }
  const Extents strides = strides_of(source.extents());
  node.give_host(taken(node, source, extents, [&](const Extents& at) {
    int64_t position = 0;
    for (size_t d = 0; d < at.size(); ++d) position += (begin[d] + at[d] * step[d]) * strides[d];
    return position;
  }));
}

void compute_transpose(Node& node) {
  const HostTensor& source = *node.host(0);
  const size_t rank = source.rank();
  std::vector<int64_t> order(rank);
  std::iota(order.rbegin(), order.rend(), int64_t{0});
  const std::vector<size_t> axes = node.axes(node.attributes().integers("perm").value_or(order), rank);
  if (axes.size() != rank) node.fail("perm has not one value for each dimension");
  Extents extents;
  for (const size_t d : axes) extents.push_back(source.extents()[d]);
  const Extents strides = strides_of(source.extents());
  node.give_host(taken(node, source, extents, [&](const Extents& at) {
    int64_t position = 0;
    for (size_t d = 0; d < rank; ++d) position += at[d] * strides[axes[d]];
    return position;
  }));
}

void compute_expand(Node& node) {
  node.give_host(repeated(node, *node.host(0), broadcast(node, {node.extents(0), node.list(1, "extents")})));
}

/// An integer in another type, as ONNX converts it: what is beyond that type loses its high bits.
int64_t wrapped(int32_t type, int64_t value) {
  switch (type) {
    case onnx::TensorProto::INT8:
      return static_cast<int8_t>(value);
    case onnx::TensorProto::UINT8:
      return static_cast<uint8_t>(value);
    case onnx::TensorProto::INT16:
      return static_cast<int16_t>(value);
    case onnx::TensorProto::UINT16:
      return static_cast<uint16_t>(value);
    case onnx::TensorProto::INT32:
      return static_cast<int32_t>(value);
    case onnx::TensorProto::UINT32:
      return static_cast<uint32_t>(value);
    default:
      return held(type, value);
  }
}

void compute_cast(Node& node) {
  const int32_t type = node.type_attribute("to", onnx::TensorProto::UNDEFINED);
  (void)node.values().storage_of(type);
  const HostTensor& source = *node.host(0);
  HostTensor result = empty_of(node, type, source.extents());
  for (size_t i = 0; i < source.size(); ++i) {
    if (!result.is_integer()) {
      result.reals()[i] = rounded(type, source.real(i));
    } else if (type == onnx::TensorProto::BOOL) {
      result.integers()[i] = source.real(i) != 0 ? 1 : 0;
    } else {
      result.integers()[i] =
          source.is_integer() ? wrapped(type, source.integers()[i]) : held(type, checked_truncate(source.reals()[i]));
    }
  }
  node.give_host(std::move(result));
}

void compute_where(Node& node) {
  const Extents extents = broadcast(node, {node.extents(0), node.extents(1), node.extents(2)});
  const HostTensor chosen = repeated(node, *node.host(0), extents), other = repeated(node, *node.host(2), extents);
  HostTensor result = repeated(node, *node.host(1), extents);
  with_elements(result, other, [&](auto& to, const auto& from) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (chosen.integers()[i] == 0) to[i] = from[i];
    }
  });
  node.give_host(std::move(result));
}

/// All elements of a list.
void compute_reduction(Node& node) {
  const int64_t since = node.type() == "ReduceSum" ? 13 : 18;
  const HostTensor& source = *node.host(0);
  const std::vector<size_t> axes = node.axes(node.list("axes", 1, since, {}), source.rank());
  if (axes.empty() && node.attributes().integer("noop_with_empty_axes", 0) != 0) {
    return node.give_host(source.copy(node.budget()));
  }
  const bool keep = node.attributes().integer("keepdims", 1) != 0;
  const Integers& elements = source.integers();
  std::optional<int64_t> value = elements.front();
  for (size_t i = 1; i < elements.size() && value; ++i) {
    if (node.type() == "ReduceProd") value = checked_multiply(*value, elements[i]);
    if (node.type() == "ReduceSum") value = checked_add(*value, elements[i]);
    if (node.type() == "ReduceMax") value = std::max(*value, elements[i]);
    if (node.type() == "ReduceMin") value = std::min(*value, elements[i]);
  }
  node.give_host({source.type(), keep ? Extents{1} : Extents{}, Integers{held(source.type(), value)}});
}

void compute_view(Node& node) {
  Extents extents = extents_of_view(node);
  node.give_host(node.host(0)->copy(node.budget()).with_extents(std::move(extents)));
}

void compute_non_zero(Node& node) {
  const HostTensor& source = *node.host(0);
  std::vector<size_t> found;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source.real(i) != 0) found.push_back(i);
  }
  const size_t rank = source.rank();
  const Extents strides = strides_of(source.extents());
  HostTensor result = empty_of(node, onnx::TensorProto::INT64, {static_cast<int64_t>(rank), std::ssize(found)});
  Integers& coordinates = result.integers();
  for (size_t d = 0; d < rank; ++d) {
    for (size_t n = 0; n < found.size(); ++n) {
      coordinates[d * found.size() + n] = static_cast<int64_t>(found[n]) / strides[d] % source.extents()[d];
    }
  }
  node.give_host(std::move(result));
}

/// Element types that ONNX permits for an input.
enum class Accepts {
  any,
  numbers,  ///< All but booleans.
  reals,
  flags,    ///< Booleans.
  indices,  ///< int32 and int64.
};

bool is_accepted(Accepts accepts, int32_t type) {
  const bool is_flag = type == onnx::TensorProto::BOOL;
  switch (accepts) {
    case Accepts::any:
      return true;
    case Accepts::numbers:
      return !is_flag;
    case Accepts::reals:
      return !is_integer_type(type);
    case Accepts::flags:
      return is_flag;
    case Accepts::indices:
      return type == onnx::TensorProto::INT32 || type == onnx::TensorProto::INT64;
  }
  return false;
}

const char* text_of(Accepts accepts) {
  switch (accepts) {
    case Accepts::any:
      return "any type";
    case Accepts::numbers:
      return "a type of numbers";
    case Accepts::reals:
      return "a type of floating-point numbers";
    case Accepts::flags:
      return "bool";
    case Accepts::indices:
      return "int32 or int64";
  }
  return "";
}

/// An operation that is computed on the host, and what ONNX demands of its inputs.
struct HostOperation {
  void (*compute)(Node&);
  int least, most;               ///< Inputs.
  std::vector<Accepts> accepts;  ///< For each input; the last one is for all further ones.
  int first_alike = 0;           ///< From this input to `last_alike` all have one element type.
  int last_alike = 0;
};

constexpr int any_number = std::numeric_limits<int>::max();

const std::map<std::string, HostOperation>& operations() {
  static const std::map<std::string, HostOperation> all = [] {
    using enum Accepts;
    std::map<std::string, HostOperation> table = {{"Range", {compute_range, 3, 3, {numbers}, 0, 2}},
                                                  {"Gather", {compute_gather, 2, 2, {any, indices}}},
                                                  {"Concat", {compute_concat, 1, any_number, {any}, 0, any_number}},
                                                  {"Slice", {compute_slice, 1, 5, {any, indices}}},
                                                  {"Transpose", {compute_transpose, 1, 1, {any}}},
                                                  {"Expand", {compute_expand, 2, 2, {any, indices}}},
                                                  {"Cast", {compute_cast, 1, 1, {any}}},
                                                  {"Where", {compute_where, 3, 3, {flags, any}, 1, 2}},
                                                  {"NonZero", {compute_non_zero, 1, 1, {any}}},
                                                  {"Identity", {compute_view, 1, 1, {any}}},
                                                  {"Reshape", {compute_view, 2, 2, {any, indices}}},
                                                  {"Flatten", {compute_view, 1, 1, {any}}},
                                                  {"Squeeze", {compute_view, 1, 2, {any, indices}}},
                                                  {"Unsqueeze", {compute_view, 1, 2, {any, indices}}},
                                                  {"Equal", {compute_binary, 2, 2, {any}, 0, 1}},
                                                  {"Pow", {compute_power, 2, 2, {numbers}}},
                                                  {"And", {compute_binary, 2, 2, {flags}}},
                                                  {"Or", {compute_binary, 2, 2, {flags}}},
                                                  {"Not", {compute_unary, 1, 1, {flags}}},
                                                  {"Neg", {compute_unary, 1, 1, {numbers}}},
                                                  {"Abs", {compute_unary, 1, 1, {numbers}}}};
    for (const char* name : {"ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin"}) {
      table[name] = {compute_reduction, 1, 2, {numbers, indices}};
    }
    for (const auto& [name, rule] : binaries()) {
      table.try_emplace(name, HostOperation{compute_binary, 2, 2, {numbers}, 0, 1});
    }
    for (const auto& [name, rule] : unaries()) table.try_emplace(name, HostOperation{compute_unary, 1, 1, {reals}});
    return table;
  }();
  return all;
}

/// ONNX's rules of element types. The types in the file decide which elements are looked at.
void check_types(const Node& node, const HostOperation& operation) {
  for (int i = 0; i < node.inputs(); ++i) {
    if (!node.has(i)) continue;
    const int32_t type = node.element_type(i);
    const auto which = std::min(static_cast<size_t>(i), operation.accepts.size() - 1);
    if (!is_accepted(operation.accepts[which], type)) {
      node.fail(
          fmt::format("input {} is of type {}, expected {}", i, type_name(type), text_of(operation.accepts[which])));
    }
    const bool is_alike = i > operation.first_alike && i <= operation.last_alike;
    if (is_alike && type != node.element_type(operation.first_alike)) {
      node.fail(fmt::format("input {} is of type {}, expected {} as input {}", i, type_name(type),
                            type_name(node.element_type(operation.first_alike)), operation.first_alike));
    }
  }
}

/// Whether all inputs are known and few.
bool has_constants(const Node& node) {
  for (int i = 0; i < node.inputs(); ++i) {
    if (!node.has(i)) continue;
    const HostTensor* tensor = node.host(i);
    if (tensor == nullptr || !is_few(tensor->type(), static_cast<int64_t>(tensor->size()))) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> host_operations() {
  std::vector<std::string> names = {"Shape", "Size"};
  for (const auto& [name, operation] : operations()) names.push_back(name);
  return names;
}

bool computed_on_host(Node& node) {
  // These read the extents of their input, whatever is in it.
  if (node.type() == "Shape") {
    compute_shape(node);
    return true;
  }
  if (node.type() == "Size") {
    compute_size(node);
    return true;
  }
  const auto found = operations().find(node.type());
  if (found == operations().end() || node.inputs() == 0 || !has_constants(node)) return false;
  if (found->second.compute == compute_binary && node.inputs() != 2) return false;  // Min and Max take any number
  node.require_inputs(found->second.least, found->second.most);
  check_types(node, found->second);
  const HostTensor& first = *node.host(0);
  const bool is_list = first.is_integer() && first.rank() == 1 && first.size() > 0;
  if (found->second.compute == compute_reduction && !is_list) return false;
  try {
    found->second.compute(node);
  } catch (const TooMany&) {
    return false;
  }
  return true;
}

}  // namespace kiln::onnx_frontend
