#include "onnx_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "kiln/reference/convert.h"

namespace kiln::test {
namespace {

using models::HostArray;
using Type = onnx::TensorProto;

const std::map<int, std::string>& type_names() {
  static const std::map<int, std::string> names = {
      {Type::FLOAT, "float"}, {Type::DOUBLE, "double"}, {Type::FLOAT16, "float16"}, {Type::BFLOAT16, "bfloat16"},
      {Type::BOOL, "bool"},   {Type::UINT8, "uint8"},   {Type::INT8, "int8"},       {Type::UINT16, "uint16"},
      {Type::INT16, "int16"}, {Type::INT32, "int32"},   {Type::INT64, "int64"}};
  return names;
}

template <class T>
std::vector<double> numbers(const HostArray& array) {
  std::vector<T> elements(array.bytes.size() / sizeof(T));
  std::memcpy(elements.data(), array.bytes.data(), elements.size() * sizeof(T));
  return std::vector<double>(elements.begin(), elements.end());
}

std::vector<double> halves(const HostArray& array, DType dtype) {
  std::vector<double> values(array.bytes.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) values[i] = reference::load(dtype, array.bytes.data() + 2 * i);
  return values;
}

std::vector<double> values_of(const HostArray& array) {
  if (array.type == "float") return numbers<float>(array);
  if (array.type == "double") return numbers<double>(array);
  if (array.type == "float16") return halves(array, DType::f16);
  if (array.type == "bfloat16") return halves(array, DType::bf16);
  if (array.type == "int8") return numbers<int8_t>(array);
  if (array.type == "uint16") return numbers<uint16_t>(array);
  if (array.type == "int16") return numbers<int16_t>(array);
  if (array.type == "int32") return numbers<int32_t>(array);
  if (array.type == "int64") return numbers<int64_t>(array);
  return numbers<uint8_t>(array);
}

/// Elements of a field of a tensor without raw data, each of `bytes` in its type.
template <class Field>
void append(std::vector<std::byte>& memory, const Field& field, size_t bytes) {
  for (const auto element : field) {  // little-endian: the low bytes come first
    const auto* first = reinterpret_cast<const std::byte*>(&element);
    memory.insert(memory.end(), first, first + bytes);
  }
}

}  // namespace

std::optional<HostArray> read_tensor(const onnx::TensorProto& proto) {
  const auto name = type_names().find(proto.data_type());
  if (name == type_names().end()) return std::nullopt;
  HostArray array{name->second, {proto.dims().begin(), proto.dims().end()}, {}};
  const auto* raw = reinterpret_cast<const std::byte*>(proto.raw_data().data());
  array.bytes.assign(raw, raw + proto.raw_data().size());
  append(array.bytes, proto.float_data(), sizeof(float));
  append(array.bytes, proto.double_data(), sizeof(double));
  append(array.bytes, proto.int64_data(), sizeof(int64_t));
  append(array.bytes, proto.int32_data(), models::size_of_type(array.type));
  return array;
}

std::string difference(const HostArray& actual, const HostArray& expected) {
  if (actual.type != expected.type) return fmt::format("elements of {}, expected {}", actual.type, expected.type);
  if (actual.extents != expected.extents) {
    return fmt::format("extents [{}], expected [{}]", fmt::join(actual.extents, ", "),
                       fmt::join(expected.extents, ", "));
  }
  const std::vector<double> values = values_of(actual), right = values_of(expected);
  if (values.size() != right.size()) return fmt::format("{} elements, expected {}", values.size(), right.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const bool both_nan = std::isnan(values[i]) && std::isnan(right[i]);
    const double relative = actual.type == "bfloat16" ? relative_tolerance_of_bfloat16 : relative_tolerance;
    const double bound = absolute_tolerance + relative * std::fabs(right[i]);
    const bool close = values[i] == right[i] || (std::isfinite(right[i]) && std::fabs(values[i] - right[i]) <= bound);
    if (!both_nan && !close) return fmt::format("element {} is {}, expected {}", i, values[i], right[i]);
  }
  return {};
}

double largest_error(const HostArray& actual, const HostArray& expected) {
  if (actual.type != expected.type || actual.extents != expected.extents) {
    throw std::runtime_error("another type or other extents than expected");
  }
  const std::vector<double> values = values_of(actual), right = values_of(expected);
  double error = 0, largest = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    const double distance = std::fabs(values[i] - right[i]);
    error = std::isnan(distance) ? distance : std::fmax(error, distance);
    if (std::isnan(error)) return error;
    largest = std::fmax(largest, std::fabs(right[i]));
  }
  return error / largest;
}

}  // namespace kiln::test
