#include "kiln/models/host_run.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "kiln/base/error.h"
#include "kiln/frontends/onnx_inputs.h"
#include "kiln/memory.h"
#include "kiln/reference/convert.h"
#include "ports.h"

namespace kiln::models {
namespace {

/// How elements of a type are read and written: through double, which holds every number of all but int64 exactly.
struct Type {
  size_t bytes;
  double (*load)(const std::byte*);
  void (*store)(std::byte*, double);
};

template <typename T>
double load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}
template <typename T>
void store(std::byte* at, double number) {
  const auto value = static_cast<T>(number);
  std::memcpy(at, &value, sizeof value);
}
template <DType dtype>
double load_as(const std::byte* at) {
  return reference::load(dtype, at);
}
template <DType dtype>
void store_as(std::byte* at, double number) {
  reference::put(dtype, at, number);
}

const std::map<std::string, Type>& types() {
  static const std::map<std::string, Type> all = {
      {"float", {4, load<float>, store<float>}},
      {"double", {8, load<double>, store<double>}},
      {"float16", {2, load_as<DType::f16>, store_as<DType::f16>}},
      {"bfloat16", {2, load_as<DType::bf16>, store_as<DType::bf16>}},
      {"float8e4m3fn", {1, load_as<DType::f8e4m3>, store_as<DType::f8e4m3>}},
      {"float8e5m2", {1, load_as<DType::f8e5m2>, store_as<DType::f8e5m2>}},
      {"bool", {1, load<uint8_t>, store<uint8_t>}},
      {"uint8", {1, load<uint8_t>, store<uint8_t>}},
      {"int8", {1, load<int8_t>, store<int8_t>}},
      {"int16", {2, load<int16_t>, store<int16_t>}},
      {"uint16", {2, load<uint16_t>, store<uint16_t>}},
      {"int32", {4, load<int32_t>, store<int32_t>}},
      {"int64", {8, load<int64_t>, store<int64_t>}},
  };
  return all;
}

const Type& type_called(const std::string& name) {
  const auto found = types().find(name);
  if (found == types().end()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("arrays of type {} are not known", name));
  }
  return found->second;
}

size_t elements_of(const std::vector<int64_t>& extents) {
  size_t elements = 1;
  for (const int64_t extent : extents) elements *= static_cast<size_t>(extent);
  return elements;
}

bool holds(DType dtype, double number) {
  if (is_floating(dtype)) {  // an infinity may become one of the type, a number may not
    return !std::isfinite(number) || std::isfinite(reference::round_to(dtype, number));
  }
  return number >= traits(dtype).least && number <= traits(dtype).largest && number == std::nearbyint(number);
}

/// The array as the device has it.
std::vector<std::byte> stored(const ModelTensor& wanted, const HostArray& given) {
  if (given.extents != wanted.extents) {
    const bool batch_only = differ_in_batch_only(given.extents, wanted.extents);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("input '{}' is {}, expected {}", wanted.name, text_of_extents(given.extents),
                            text_of_extents(wanted.extents)),
                batch_only ? "the model is loaded for one batch: --batch of kiln infer, Model::set_batch()" : "");
  }
  const Type& from = type_called(given.type);
  const size_t count = elements_of(given.extents), size = static_cast<size_t>(size_of(wanted.dtype));
  if (given.bytes.size() != count * from.bytes) {
    throw Error(ErrorCode::invalid_argument, fmt::format("input '{}' has {} bytes, expected {}", wanted.name,
                                                         given.bytes.size(), count * from.bytes));
  }
  std::vector<std::byte> bytes(count * size);
  for (size_t i = 0; i < count; ++i) {
    const double number = from.load(given.bytes.data() + i * from.bytes);
    if (!holds(wanted.dtype, number)) {
      throw Error(ErrorCode::invalid_argument, fmt::format("element {} of input '{}' is {}, which {} does not hold", i,
                                                           wanted.name, number, to_string(wanted.dtype)));
    }
    reference::put(wanted.dtype, bytes.data() + i * size, number);
  }
  return bytes;
}

HostArray as_in_model(const ModelTensor& tensor, std::span<const std::byte> bytes) {
  const Type& to = type_called(tensor.type);
  const size_t count = elements_of(tensor.extents), size = static_cast<size_t>(size_of(tensor.dtype));
  HostArray array{tensor.type, tensor.extents, std::vector<std::byte>(count * to.bytes)};
  for (size_t i = 0; i < count; ++i) {
    to.store(array.bytes.data() + i * to.bytes, reference::load(tensor.dtype, bytes.data() + i * size));
  }
  return array;
}

/// The size of a model that leaves extents open.
void take_shapes(Model& model, std::span<const HostArray> inputs) {
  InputShapes shapes;
  bool are_new = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    are_new = are_new || inputs[i].extents != model.inputs()[i].extents;
    shapes[model.inputs()[i].name] = inputs[i].extents;
  }
  if (are_new) model.set_shapes(shapes);
}

Tensor tensor_over(const ModelTensor& tensor, const void* memory) {
  const std::vector<int64_t> extents = tensor.extents.empty() ? std::vector<int64_t>{1} : tensor.extents;
  return {memory, tensor.dtype, extents, contiguous};
}

}  // namespace

size_t size_of_type(const std::string& type) {
  const auto found = types().find(type);
  return found == types().end() ? 0 : found->second.bytes;
}

HostArray converted(const HostArray& array, const std::string& type) {
  const Type &from = type_called(array.type), &to = type_called(type);
  if (type == array.type) return array;
  const size_t count = elements_of(array.extents);
  HostArray result{type, array.extents, std::vector<std::byte>(count * to.bytes)};
  for (size_t i = 0; i < count; ++i)
    to.store(result.bytes.data() + i * to.bytes, from.load(array.bytes.data() + i * from.bytes));
  return result;
}

std::vector<HostArray> run_on_host(Context& context, Model& model, std::span<const HostArray> inputs) {
  if (inputs.size() != model.inputs().size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} inputs are given, expected {}", inputs.size(), model.inputs().size()));
  }
  if (model.has_open_batch() || model.has_open_extents()) take_shapes(model, inputs);
  std::vector<DeviceMemory> memory;
  std::vector<NamedTensor> given, results;
  const auto allocate = [&](const ModelTensor& tensor) -> DeviceMemory& {
    const size_t bytes = elements_of(tensor.extents) * static_cast<size_t>(size_of(tensor.dtype));
    return memory.emplace_back(context, std::max<size_t>(bytes, 1));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ModelTensor& tensor = model.inputs()[i];
    const std::vector<std::byte> bytes = stored(tensor, inputs[i]);
    DeviceMemory& there = allocate(tensor);
    if (!bytes.empty()) there.upload(bytes);
    given.push_back({tensor.name, tensor_over(tensor, there.data())});
  }
  for (const ModelTensor& tensor : model.outputs()) {
    results.push_back({tensor.name, tensor_over(tensor, allocate(tensor).data())});
  }
  model.run(given, results);
  std::vector<HostArray> arrays;
  for (size_t j = 0; j < results.size(); ++j) {
    const ModelTensor& tensor = model.outputs()[j];
    std::vector<std::byte> bytes(elements_of(tensor.extents) * static_cast<size_t>(size_of(tensor.dtype)));
    if (!bytes.empty()) memory[inputs.size() + j].download(bytes);
    arrays.push_back(as_in_model(tensor, bytes));
  }
  return arrays;
}

}  // namespace kiln::models
