#include "onnx/host_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "kiln/base/error.h"
#include "kiln/reference/convert.h"

namespace kiln::onnx_frontend {
namespace {

using Type = onnx::TensorProto;

// Of TensorProto.DataType, from ONNX 1.14 on.
constexpr int32_t float8_e4m3fn = 17, float8_e5m2 = 19;

[[noreturn]] void fail(const onnx::TensorProto& tensor, const std::string& what) {
  throw Error(ErrorCode::parse_error, fmt::format("tensor '{}' {}", tensor.name(), what));
}

/// The file that holds the tensor's elements, which must be inside the model's folder: a model is data from outside.
std::filesystem::path external_file(const onnx::TensorProto& tensor, const std::string& folder,
                                    const std::string& location) {
  const std::filesystem::path relative(location);
  bool leaves = location.empty() || relative.is_absolute();
  for (const auto& part : relative) leaves = leaves || part == "..";
  if (leaves) {
    fail(tensor, fmt::format("has its data at '{}', expected a path inside the model's folder", location));
  }
  return std::filesystem::path(folder) / relative;
}

std::string external_data(const onnx::TensorProto& tensor, const std::string& folder) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = std::strtoull(entry.value().c_str(), nullptr, 10);
    if (entry.key() == "length") length = std::strtoull(entry.value().c_str(), nullptr, 10);
  }
  const std::filesystem::path path = external_file(tensor, folder, location);
  std::error_code failure;
  const uint64_t size = std::filesystem::file_size(path, failure);
  std::ifstream file(path, std::ios::binary);
  if (failure || !file) {
    throw Error(ErrorCode::io_error,
                fmt::format("the data of tensor '{}' cannot be read from {}", tensor.name(), path.string()),
                "keep it beside the model's file");
  }
  if (offset > size || length.value_or(size - offset) > size - offset) {
    fail(tensor, fmt::format("has its data behind the end of {}", path.string()));
  }
  std::string bytes(length.value_or(size - offset), '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw Error(ErrorCode::io_error, fmt::format("{} cannot be read to its end", path.string()));
  return bytes;
}

template <typename T>
T raw_at(const std::string& bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

/// The elements by `bytes`, as raw data and external data hold them.
template <typename T, typename List, typename Convert>
void read_raw(const onnx::TensorProto& tensor, const std::string& bytes, size_t count, List& list,
              const Convert& convert) {
  if (bytes.size() != count * sizeof(T)) {
    fail(tensor, fmt::format("has {} bytes, expected {}", bytes.size(), count * sizeof(T)));
  }
  list.reserve(count);
  for (size_t i = 0; i < count; ++i) list.push_back(convert(raw_at<T>(bytes, i)));
}

template <typename Field, typename List, typename Convert>
void read_field(const onnx::TensorProto& tensor, const Field& field, size_t count, List& list, const Convert& convert) {
  if (static_cast<size_t>(field.size()) != count) {
    fail(tensor, fmt::format("has {} elements, expected {}", field.size(), count));
  }
  list.reserve(count);
  for (const auto value : field) list.push_back(convert(value));
}

class Reader {
 public:
  Reader(const onnx::TensorProto& tensor, const std::string& folder) : tensor_(tensor) {
    result_.type = tensor.data_type();
    result_.extents.assign(tensor.dims().begin(), tensor.dims().end());
    count_ = static_cast<size_t>(graph::count_elements(result_.extents));
    is_external_ = tensor.data_location() == Type::EXTERNAL;
    if (is_external_) external_ = external_data(tensor, folder);
  }

  HostTensor run() {
    switch (tensor_.data_type()) {
      case Type::FLOAT:
        return reals<float>(tensor_.float_data(), [](float v) { return static_cast<double>(v); });
      case Type::DOUBLE:
        return reals<double>(tensor_.double_data(), [](double v) { return v; });
      case Type::FLOAT16:
        return reals<uint16_t>(tensor_.int32_data(),
                               [](auto v) { return reference::from_f16(static_cast<uint16_t>(v)); });
      case Type::BFLOAT16:
        return reals<uint16_t>(tensor_.int32_data(),
                               [](auto v) { return reference::from_bf16(static_cast<uint16_t>(v)); });
      case float8_e4m3fn:
        return reals<uint8_t>(tensor_.int32_data(),
                              [](auto v) { return reference::from_f8e4m3(static_cast<uint8_t>(v)); });
      case float8_e5m2:
        return reals<uint8_t>(tensor_.int32_data(),
                              [](auto v) { return reference::from_f8e5m2(static_cast<uint8_t>(v)); });
      case Type::INT64:
        return integers<int64_t>(tensor_.int64_data());
      case Type::INT32:
        return integers<int32_t>(tensor_.int32_data());
      case Type::INT16:
        return integers<int16_t>(tensor_.int32_data());
      case Type::UINT16:
        return integers<uint16_t>(tensor_.int32_data());
      case Type::INT8:
        return integers<int8_t>(tensor_.int32_data());
      case Type::UINT8:
      case Type::BOOL:
        return integers<uint8_t>(tensor_.int32_data());
      case Type::UINT32:
        return integers<uint32_t>(tensor_.uint64_data());
      case Type::UINT64:
        return integers<uint64_t>(tensor_.uint64_data());
      default:
        fail(tensor_, fmt::format("has elements of type {}, which are no numbers that Kiln has",
                                  type_name(tensor_.data_type())));
    }
  }

 private:
  template <typename T, typename Field, typename Convert>
  HostTensor reals(const Field& field, const Convert& convert) {
    read<T>(field, result_.reals, convert);
    return std::move(result_);
  }
  template <typename T, typename Field>
  HostTensor integers(const Field& field) {
    read<T>(field, result_.integers, [](auto value) { return static_cast<int64_t>(value); });
    return std::move(result_);
  }
  template <typename T, typename Field, typename List, typename Convert>
  void read(const Field& field, List& list, const Convert& convert) {
    if (is_external_) return read_raw<T>(tensor_, external_, count_, list, convert);
    if (tensor_.has_raw_data()) return read_raw<T>(tensor_, tensor_.raw_data(), count_, list, convert);
    read_field(tensor_, field, count_, list, convert);
  }

  const onnx::TensorProto& tensor_;
  HostTensor result_;
  size_t count_ = 0;
  bool is_external_ = false;
  std::string external_;
};

}  // namespace

bool HostTensor::is_integer() const {
  return is_integer_type(type);
}

bool is_integer_type(int32_t type) {
  switch (type) {
    case Type::BOOL:
    case Type::INT8:
    case Type::UINT8:
    case Type::INT16:
    case Type::UINT16:
    case Type::INT32:
    case Type::UINT32:
    case Type::INT64:
    case Type::UINT64:
      return true;
    default:
      return false;
  }
}

bool is_few(int32_t type, int64_t elements) {
  constexpr int64_t most_integers = int64_t{1} << 20, most_reals = int64_t{1} << 16;
  return elements <= (is_integer_type(type) ? most_integers : most_reals);
}

std::string type_name(int32_t type) {
  if (type == float8_e4m3fn) return "float8e4m3fn";
  if (type == float8_e5m2) return "float8e5m2";
  std::string name = Type::DataType_Name(static_cast<Type::DataType>(type));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.empty() ? fmt::format("{}", type) : name;
}

HostTensor read_tensor(const onnx::TensorProto& tensor, const std::string& folder) {
  return Reader(tensor, folder).run();
}

graph::Bytes stored_as(DType dtype, const HostTensor& tensor) {
  const auto size = static_cast<size_t>(size_of(dtype));
  auto bytes = std::make_shared<std::vector<std::byte>>(tensor.size() * size);
  for (size_t i = 0; i < tensor.size(); ++i) {
    if (tensor.is_integer() && dtype == DType::i32) {
      const int64_t value = tensor.integers[i];
      if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("the integer {} does not fit 32 bits, as Kiln stores it", value));
      }
      const auto narrow = static_cast<int32_t>(value);
      std::memcpy(bytes->data() + i * size, &narrow, sizeof narrow);
    } else {
      reference::put(dtype, bytes->data() + i * size, tensor.real(i));
    }
  }
  return bytes;
}

}  // namespace kiln::onnx_frontend
