#include "onnx/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "kiln/base/checked.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "onnx/load.h"

namespace kiln::onnx_frontend {
namespace {

using Type = onnx::TensorProto;

}  // namespace

DType storage_of(int32_t type, std::optional<DType> dtype) {
  switch (type) {
    case Type::FLOAT:
    case Type::DOUBLE:
      return dtype.value_or(DType::f32);
    case Type::FLOAT16:
      return dtype.value_or(DType::f16);
    case Type::BFLOAT16:
      return dtype.value_or(DType::bf16);
    case float8_e4m3fn:
      return DType::f8e4m3;
    case float8_e5m2:
      return DType::f8e5m2;
    case Type::BOOL:
    case Type::UINT8:
      return DType::u8;
    case Type::INT8:
      return DType::i8;
    case Type::INT16:
    case Type::UINT16:
    case Type::INT32:
    case Type::INT64:
      return DType::i32;
    default:
      refuse(fmt::format("there is no dtype for elements of type {}", type_name(type)));
  }
}

ValueId Values::device(const std::string& name) {
  Known& value = known.at(name);
  if (!value.value) {
    const DType storage = storage_of(value.type);
    const HostTensor* elements = host(name);
    const int64_t bytes = graph::count_elements(value.extents) * size_of(storage);
    if (value.tensor == nullptr) budget.take_bytes(bytes);
    try {
      value.value =
          graph.constant(name, storage, value.extents,
                         elements != nullptr ? stored_as(storage, *elements) : read_as(storage, *value.tensor, files));
    } catch (const Error& error) {
      if (value.tensor != nullptr && error.code() != ErrorCode::unsupported) throw;  // it names the tensor
      throw Error(error.code(), fmt::format("constant '{}': {}", printable_name(name), error.message()), error.hint());
    }
    if (value.tensor != nullptr) stored_bytes += bytes;
  }
  return *value.value;
}

const HostTensor* Values::host(const std::string& name) {
  Known& value = known.at(name);
  if (!value.host && value.tensor != nullptr && is_few(value.type, graph::count_elements(value.extents))) {
    value.host = std::make_shared<const HostTensor>(read_tensor(*value.tensor, files));
  }
  return value.host.get();
}

bool Node::knows_inputs() const {
  return std::all_of(proto_.input().begin(), proto_.input().end(),
                     [&](const std::string& input) { return input.empty() || values_.known.contains(input); });
}

void Node::require_inputs(int least, int most) const {
  bool missing = inputs() < least || inputs() > most || outputs() < 1;
  for (int i = 0; !missing && i < least; ++i) missing = proto_.input(i).empty();
  if (missing) {
    fail(fmt::format("has {} inputs and {} outputs, expected {} to {} and at least 1", inputs(), outputs(), least,
                     most));
  }
}

const std::string& Node::name(int input) const {
  if (!has(input)) fail(fmt::format("input {} is missing", input));
  return proto_.input(input);
}

const Known& Node::known(int input) const {
  const auto found = values_.known.find(name(input));
  if (found == values_.known.end()) {
    refuse(fmt::format("it depends on '{}', which a node gives that is not covered", printable_name(name(input))));
  }
  return found->second;
}

const std::string& Node::known_name(int input) const {
  (void)known(input);
  return name(input);
}

std::vector<int64_t> Node::integers(int input, std::string_view what) const {
  const HostTensor* tensor = host(input);
  if (tensor == nullptr)
    refuse(fmt::format("its {} are computed from the model's inputs, and have to be known before", what));
  if (!tensor->is_integer()) {
    fail(fmt::format("its {} (input {}) are of type {}, expected integers", what, input, type_name(tensor->type())));
  }
  budget().take_elements(static_cast<int64_t>(tensor->size()));
  return tensor->integers();
}

std::vector<int64_t> Node::list(int input, std::string_view what) const {
  std::vector<int64_t> elements = integers(input, what);
  if (rank(input) > 1) {
    fail(fmt::format("its {} (input {}) have {} dimensions, expected one", what, input, rank(input)));
  }
  return elements;
}

double Node::number(int input, std::string_view what) const {
  const HostTensor* tensor = host(input);
  if (tensor == nullptr)
    refuse(fmt::format("its {} is computed from the model's inputs, and has to be known before", what));
  if (tensor->size() != 1) fail(fmt::format("its {} has {} elements, expected 1", what, tensor->size()));
  return tensor->real(0);
}

int64_t Node::integer(int input, std::string_view what) const {
  const HostTensor* tensor = host(input);
  const double real = number(input, what);
  if (tensor->is_integer()) return tensor->integers().front();
  const std::optional<int64_t> whole = checked_truncate(real);
  if (!whole || static_cast<double>(*whole) != real) fail(fmt::format("its {} is {}, expected an integer", what, real));
  return *whole;
}

std::vector<int64_t> Node::list(std::string_view name, int input, int64_t since, const Extents& fallback) const {
  if (opset() < since) return attributes_.integers(name).value_or(fallback);
  return has(input) ? list(input, name) : fallback;
}

int32_t Node::type_attribute(std::string_view name, int32_t fallback) const {
  const int64_t type = attributes_.integer(name, fallback);
  if (!std::in_range<int32_t>(type)) fail(fmt::format("attribute {} is {}, which is no element type", name, type));
  return static_cast<int32_t>(type);
}

int64_t Node::multiply(int64_t a, int64_t b) const {
  const std::optional<int64_t> product = checked_multiply(a, b);
  if (!product) fail(fmt::format("its result would have {} x {} elements, which 64 bits do not hold", a, b));
  return *product;
}

size_t Node::axis(int64_t axis, size_t rank) const {
  const auto dimensions = static_cast<int64_t>(rank);
  if (axis < -dimensions || axis >= dimensions) {
    fail(fmt::format("axis is {}, expected {} to {}", axis, -dimensions, dimensions - 1));
  }
  return static_cast<size_t>(axis < 0 ? axis + dimensions : axis);
}

std::vector<size_t> Node::axes(const std::vector<int64_t>& axes, size_t rank) const {
  std::vector<size_t> found;
  for (const int64_t one : axes) found.push_back(axis(one, rank));
  std::vector<size_t> sorted = found;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) fail(fmt::format("axis {} stands twice", *twice));
  return found;
}

void Node::give_as(int32_t type, ValueId value, int output) {
  if (!has_output(output)) return;
  const std::string& name = proto_.output(output);
  if (graph().value(value).name.empty()) graph().rename(value, name);
  values_.known[name] = {type, graph().value(value).extents, value, nullptr};
}

void Node::give_dequantised(int32_t type, ValueId value, const Dequantised& from) {
  if (!has_output(0)) return;
  give_as(type, value);
  values_.known[proto_.output(0)].dequantised = from;
}

void Node::give_integers(ValueId stored, ValueId as_real) {
  if (!has_output(0)) return;
  give_as(Type::INT32, stored);
  values_.known[proto_.output(0)].as_real = as_real;
}

void Node::give_signed(ValueId stored, ValueId as_unsigned) {
  if (!has_output(0)) return;
  give_as(Type::INT8, stored);
  values_.known[proto_.output(0)].as_unsigned = as_unsigned;
}

void Node::give_host(HostTensor tensor, int output) {
  if (!has_output(output)) return;
  budget().take_bytes(static_cast<int64_t>(tensor.size() * sizeof(int64_t)));
  const int32_t type = tensor.type();
  Extents extents = tensor.extents();
  values_.known[proto_.output(output)] = {type, std::move(extents), std::nullopt,
                                          std::make_shared<const HostTensor>(std::move(tensor)), nullptr};
}

void Node::give_tensor(const onnx::TensorProto& tensor) {
  if (!has_output(0)) return;
  Extents extents(tensor.dims().begin(), tensor.dims().end());
  (void)graph::count_elements(extents);
  values_.known[proto_.output(0)] = {tensor.data_type(), std::move(extents), std::nullopt, nullptr, &tensor};
}

void Node::give_repeated(const HostTensor& one, const Extents& extents, int output) {
  const int32_t type = one.type();
  const int64_t count = graph::count_elements(extents);
  if (count > Budget::most_elements) {
    const ValueId element = constant("an element", values_.storage_of(type), one);
    return give_as(type, graph().repeat(graph().reshape(element, Extents(extents.size(), 1)), extents), output);
  }
  if (!is_few(type, count)) {
    const DType storage = values_.storage_of(type);
    const graph::Bytes element = stored_as(storage, one);
    budget().take_bytes(count * size_of(storage));
    auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(count) * element->size());
    for (size_t i = 0; i < bytes->size(); i += element->size())
      std::copy(element->begin(), element->end(), &(*bytes)[i]);
    return give_as(type, graph().constant("an element, repeated", storage, extents, std::move(bytes)), output);
  }
  HostTensor all(budget(), type, extents);
  if (all.is_integer()) {
    std::fill(all.integers().begin(), all.integers().end(), one.integers().at(0));
  } else {
    std::fill(all.reals().begin(), all.reals().end(), one.reals().at(0));
  }
  give_host(std::move(all), output);
}

ValueId Node::constant(std::string name, DType dtype, const HostTensor& elements) const {
  const auto size = static_cast<int64_t>(elements.size());
  budget().take_elements(size);
  budget().take_bytes(size * size_of(dtype));
  return graph().constant(std::move(name), dtype, elements.extents(), stored_as(dtype, elements));
}

std::vector<int64_t> Node::table(int64_t count) const {
  budget().take_elements(count);
  return std::vector<int64_t>(static_cast<size_t>(count), 0);
}

void Node::fail(const std::string& what) const {
  throw Error(ErrorCode::parse_error, fmt::format("{}: {}", describe(proto_), what));
}

TensorSpec spec_of(DType dtype, const Extents& extents) {
  if (extents.size() > 6)
    refuse(fmt::format("a tensor has {} dimensions, and operations take up to 6", extents.size()));
  return TensorSpec::packed(dtype, extents, dimension_letters(static_cast<int>(extents.size())));
}

TensorSpec spec_of(const graph::Graph& graph, ValueId value) {
  return spec_of(graph.value(value).dtype, graph.value(value).extents);
}

ValueId with_rank(graph::Graph& graph, ValueId value, size_t rank) {
  Extents extents = graph.value(value).extents;
  if (extents.size() < rank) extents.insert(extents.begin(), rank - extents.size(), 1);
  return graph.reshape(value, std::move(extents));
}

ValueId at_least_1d(graph::Graph& graph, ValueId value) {
  return with_rank(graph, value, 1);
}

}  // namespace kiln::onnx_frontend
