#include "onnx/host_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/reference/convert.h"

namespace kiln::onnx_frontend {
namespace {

using Type = onnx::TensorProto;

[[noreturn]] void fail(const onnx::TensorProto& tensor, const std::string& what) {
  throw Error(ErrorCode::parse_error, fmt::format("tensor '{}' {}", printable_name(tensor.name()), what));
}

template <typename T>
T raw_at(const std::string& bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

/// Elements that stand one behind the other.
struct Range {
  size_t begin, end;
};

/// Elements of `bytes`, as raw data and external data hold `count` of them.
template <typename T, typename List, typename Convert>
void read_raw(const onnx::TensorProto& tensor, const std::string& bytes, size_t count, const Range& range, List& list,
              const Convert& convert) {
  if (bytes.size() / sizeof(T) != count || bytes.size() % sizeof(T) != 0) {
    fail(tensor, fmt::format("has {} bytes, expected {} elements of {}", bytes.size(), count, sizeof(T)));
  }
  for (size_t i = range.begin; i < range.end; ++i) list.push_back(convert(raw_at<T>(bytes, i)));
}

template <typename Field, typename List, typename Convert>
void read_field(const onnx::TensorProto& tensor, const Field& field, size_t count, const Range& range, List& list,
                const Convert& convert) {
  if (static_cast<size_t>(field.size()) != count) {
    fail(tensor, fmt::format("has {} elements, expected {}", field.size(), count));
  }
  for (size_t i = range.begin; i < range.end; ++i) list.push_back(convert(field.Get(static_cast<int>(i))));
}

class Reader {
 public:
  Reader(const onnx::TensorProto& tensor, ExternalData& files)
      : tensor_(tensor), files_(files), extents_(tensor.dims().begin(), tensor.dims().end()) {
    count_ = static_cast<size_t>(graph::count_elements(extents_));
  }

  const Extents& extents() const { return extents_; }
  size_t count() const { return count_; }

  /// A list of these.
  HostTensor read(const Range& range) {
    range_ = range;
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
    return {tensor_.data_type(), {size_of_range()}, elements<T, HostTensor::Reals>(field, convert)};
  }
  template <typename T, typename Field>
  HostTensor integers(const Field& field) {
    const IntegerRange range = range_of(tensor_.data_type());
    return {tensor_.data_type(), {size_of_range()}, elements<T, HostTensor::Integers>(field, [&](auto value) {
              if (std::cmp_less(value, range.least) || std::cmp_greater(value, range.largest)) {
                fail(tensor_, fmt::format("holds {}, expected {} to {}", value, range.least, range.largest));
              }
              return static_cast<int64_t>(value);
            })};
  }
  template <typename T, typename List, typename Field, typename Convert>
  List elements(const Field& field, const Convert& convert) {
    List list;
    list.reserve(range_.end - range_.begin);
    if (tensor_.data_location() == Type::EXTERNAL) {
      if (!external_) external_ = files_.read(tensor_, count_ * sizeof(T));
      read_raw<T>(tensor_, *external_, count_, range_, list, convert);
    } else if (tensor_.has_raw_data()) {
      read_raw<T>(tensor_, tensor_.raw_data(), count_, range_, list, convert);
    } else {
      read_field(tensor_, field, count_, range_, list, convert);
    }
    return list;
  }

  int64_t size_of_range() const { return static_cast<int64_t>(range_.end - range_.begin); }

  const onnx::TensorProto& tensor_;
  ExternalData& files_;
  Extents extents_;
  size_t count_ = 0;
  Range range_{};
  std::optional<std::string> external_;  // all of it
};

std::variant<HostTensor::Integers, HostTensor::Reals> zeros(int32_t type, size_t count) {
  if (is_integer_type(type)) return HostTensor::Integers(count, 0);
  return HostTensor::Reals(count, 0.0);
}

size_t counted(Budget& budget, const Extents& extents) {
  const int64_t elements = graph::count_elements(extents);
  budget.take_elements(elements);
  return static_cast<size_t>(elements);
}

[[noreturn]] void refuse_kind(int32_t type, const char* expected) {
  throw Error(ErrorCode::parse_error, fmt::format("takes elements of type {} for {}", type_name(type), expected));
}

/// Writes the elements of `tensor`, rounded to `dtype`.
void store(DType dtype, const HostTensor& tensor, std::byte* to) {
  const auto size = static_cast<size_t>(size_of(dtype));
  if (!tensor.is_integer()) {
    for (const double value : tensor.reals()) {
      reference::put(dtype, to, value);
      to += size;
    }
    return;
  }
  for (const int64_t value : tensor.integers()) {
    if (dtype != DType::i32) {
      reference::put(dtype, to, static_cast<double>(value));
    } else if (std::in_range<int32_t>(value)) {
      const auto narrow = static_cast<int32_t>(value);
      std::memcpy(to, &narrow, sizeof narrow);
    } else {
      throw Error(ErrorCode::unsupported, fmt::format("the integer {} does not fit 32 bits, as Kiln stores it", value));
    }
    to += size;
  }
}

}  // namespace

HostTensor::HostTensor(Budget& budget, int32_t type, Extents extents)
    : type_(type), extents_(std::move(extents)), elements_(zeros(type, counted(budget, extents_))) {}

HostTensor::HostTensor(int32_t type, Extents extents, Integers elements)
    : HostTensor(type, std::move(extents), std::variant<Integers, Reals>(std::move(elements))) {}

HostTensor::HostTensor(int32_t type, Extents extents, Reals elements)
    : HostTensor(type, std::move(extents), std::variant<Integers, Reals>(std::move(elements))) {}

HostTensor::HostTensor(int32_t type, Extents extents, std::variant<Integers, Reals> elements)
    : type_(type), extents_(std::move(extents)), elements_(std::move(elements)) {
  const bool fits = std::holds_alternative<Integers>(elements_) == is_integer_type(type_) &&
                    std::cmp_equal(size(), graph::count_elements(extents_));
  if (!fits) {
    throw Error(ErrorCode::internal, fmt::format("a {} tensor of {} is made of {} elements of another kind or number",
                                                 type_name(type_), fmt::join(extents_, "x"), size()));
  }
}

HostTensor HostTensor::copy(Budget& budget) const {
  (void)counted(budget, extents_);
  return {type_, extents_, elements_};
}

HostTensor HostTensor::with_extents(Extents extents) && {
  return {type_, std::move(extents), std::move(elements_)};
}

size_t HostTensor::size() const {
  return std::visit([](const auto& elements) { return elements.size(); }, elements_);
}

bool HostTensor::is_integer() const {
  return std::holds_alternative<Integers>(elements_);
}

const HostTensor::Integers& HostTensor::integers() const {
  if (!is_integer()) refuse_kind(type_, "integers");
  return std::get<Integers>(elements_);
}

HostTensor::Integers& HostTensor::integers() {
  if (!is_integer()) refuse_kind(type_, "integers");
  return std::get<Integers>(elements_);
}

const HostTensor::Reals& HostTensor::reals() const {
  if (is_integer()) refuse_kind(type_, "floating-point numbers");
  return std::get<Reals>(elements_);
}

HostTensor::Reals& HostTensor::reals() {
  if (is_integer()) refuse_kind(type_, "floating-point numbers");
  return std::get<Reals>(elements_);
}

double HostTensor::real(size_t i) const {
  return is_integer() ? static_cast<double>(integers()[i]) : reals()[i];
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

IntegerRange range_of(int32_t type) {
  const auto all_of = []<typename T>(T) {
    return IntegerRange{std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  };
  switch (type) {
    case Type::BOOL:
      return {0, std::numeric_limits<uint8_t>::max()};  // any but 0 is true
    case Type::INT8:
      return all_of(int8_t{});
    case Type::UINT8:
      return all_of(uint8_t{});
    case Type::INT16:
      return all_of(int16_t{});
    case Type::UINT16:
      return all_of(uint16_t{});
    case Type::INT32:
      return all_of(int32_t{});
    case Type::UINT32:
      return all_of(uint32_t{});
    case Type::UINT64:
      return {0, std::numeric_limits<int64_t>::max()};  // of those that Kiln computes with
    default:
      return all_of(int64_t{});
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

HostTensor read_tensor(const onnx::TensorProto& tensor, ExternalData& files) {
  Reader reader(tensor, files);
  return reader.read({0, reader.count()}).with_extents(reader.extents());
}

graph::Bytes read_as(DType dtype, const onnx::TensorProto& tensor, ExternalData& files) {
  constexpr size_t most_at_once = size_t{1} << 16;  // eight bytes each
  Reader reader(tensor, files);
  const auto size = static_cast<size_t>(size_of(dtype));
  auto bytes = std::make_shared<std::vector<std::byte>>();
  size_t begin = 0;
  do {
    const size_t end = begin + std::min(most_at_once, reader.count() - begin);
    const HostTensor part = reader.read({begin, end});
    bytes->resize(reader.count() * size);  // not before the file has turned out to hold as many
    store(dtype, part, bytes->data() + begin * size);
    begin = end;
  } while (begin < reader.count());
  return bytes;
}

graph::Bytes stored_as(DType dtype, const HostTensor& tensor) {
  auto bytes = std::make_shared<std::vector<std::byte>>(tensor.size() * static_cast<size_t>(size_of(dtype)));
  store(dtype, tensor, bytes->data());
  return bytes;
}

}  // namespace kiln::onnx_frontend
