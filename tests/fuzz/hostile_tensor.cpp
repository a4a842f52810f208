#include "hostile_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace kiln::fuzz {
namespace {

using Type = onnx::TensorProto;

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
constexpr int32_t float8_e4m3fn = 17, float8_e5m2 = 19;

constexpr int64_t power(int exponent) {
  return int64_t{1} << exponent;
}

// 2^20, 2^27 and 2^16 are about as many elements as tables may have; 17 and 100 are plausible and fit nothing.
constexpr std::array odd_integers = {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{2}, int64_t{3},    int64_t{-2},
                                     power(24),  power(31),  power(32),   power(40),  power(62),     least,
                                     most,       power(20),  power(27),   power(16),  power(31) - 1, -power(31),
                                     -power(40), most - 1,   least + 1,   int64_t{7}, int64_t{17},   int64_t{100}};

const std::array odd_reals = {0.0,
                              -0.0,
                              1.0,
                              -1.0,
                              0.5,
                              2.0,
                              3.0,
                              1e-30,
                              1e30,
                              std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              0x1p24,
                              0x1p31,
                              0x1p32,
                              0x1p40,
                              0x1p62,
                              -0x1p63,
                              0x1p63,
                              std::numeric_limits<double>::max()};

bool is_real(int32_t type) {
  return type == Type::FLOAT || type == Type::DOUBLE || type == Type::FLOAT16 || type == Type::BFLOAT16 ||
         type == float8_e4m3fn || type == float8_e5m2;
}

size_t bytes_of(int32_t type) {
  switch (type) {
    case Type::DOUBLE:
    case Type::INT64:
    case Type::UINT64:
    case Type::COMPLEX64:
      return 8;
    case Type::FLOAT16:
    case Type::BFLOAT16:
    case Type::INT16:
    case Type::UINT16:
      return 2;
    case Type::BOOL:
    case Type::INT8:
    case Type::UINT8:
    case float8_e4m3fn:
    case float8_e5m2:
      return 1;
    case Type::COMPLEX128:
      return 16;
    default:
      return 4;
  }
}

// The bits of an element, lowest byte first. Elements of 16 and 8 bits are 1.0 or NaN.
uint64_t bits_of(int32_t type, double value) {
  uint64_t bits = 0;
  const float single = single_near(value);
  switch (type) {
    case Type::FLOAT:
      std::memcpy(&bits, &single, sizeof single);
      return bits;
    case Type::DOUBLE:
      std::memcpy(&bits, &value, sizeof value);
      return bits;
    case Type::FLOAT16:
      return std::isnan(value) ? 0x7e00 : 0x3c00;
    case Type::BFLOAT16:
      return std::isnan(value) ? 0x7fc0 : 0x3f80;
    case float8_e4m3fn:
      return std::isnan(value) ? 0x7f : 0x38;
    case float8_e5m2:
      return std::isnan(value) ? 0x7e : 0x3c;
    default:
      return static_cast<uint64_t>(integer_near(value));
  }
}

std::string raw_of(int32_t type, const std::vector<double>& values) {
  const size_t size = bytes_of(type);
  std::string raw(values.size() * size, '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = bits_of(type, values[i]);
    std::memcpy(raw.data() + i * size, &bits, std::min(size, sizeof bits));
  }
  return raw;
}

void add_to_field(onnx::TensorProto& tensor, int32_t type, double value) {
  switch (type) {
    case Type::FLOAT:
    case Type::COMPLEX64:
      return tensor.add_float_data(single_near(value));
    case Type::DOUBLE:
    case Type::COMPLEX128:
      return tensor.add_double_data(value);
    case Type::INT64:
      return tensor.add_int64_data(integer_near(value));
    case Type::UINT32:
    case Type::UINT64:
      return tensor.add_uint64_data(static_cast<uint64_t>(integer_near(value)));
    case Type::STRING:
      return tensor.add_string_data("text");
    default:
      return tensor.add_int32_data(static_cast<int32_t>(is_real(type) ? bits_of(type, value) : integer_near(value)));
  }
}

/// Elements that are written: none where there would be too many.
size_t count_of(const std::vector<int64_t>& extents) {
  constexpr int64_t largest = 4096;
  int64_t count = 1;
  for (const int64_t extent : extents) {
    if (extent < 0 || extent > largest) return 0;
    count *= extent;
    if (count > largest) return 0;
  }
  return static_cast<size_t>(count);
}

void add_entry(onnx::TensorProto& tensor, const char* key, const std::string& value) {
  onnx::StringStringEntryProto& entry = *tensor.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

void place_outside(onnx::TensorProto& tensor, size_t bytes, Oddity& oddity) {
  static const std::array<std::string, 14> places = {"none.bin",
                                                     "holes.bin",
                                                     "link.bin",
                                                     "pipe",
                                                     "folder",
                                                     "",
                                                     ".",
                                                     "..",
                                                     "../w.bin",
                                                     "/etc/passwd",
                                                     "up/etc/passwd",
                                                     "folder/../w.bin",
                                                     std::string("w.bin\0x", 7),
                                                     std::string(5000, 'a')};
  static const std::array<std::string, 10> numbers = {
      "-1", "0x10", "1e3", "", "4 ", "7", "4096", "9999", "18446744073709551615", "99999999999999999999999"};
  tensor.set_data_location(Type::EXTERNAL);
  Choices& choices = oddity.choices();
  add_entry(tensor, "location", choices.holds(40) ? choices.one_of(places) : "w.bin");
  if (choices.holds(50)) add_entry(tensor, "offset", oddity.odd() ? choices.one_of(numbers) : "8");
  if (choices.holds(50)) add_entry(tensor, "length", oddity.odd() ? choices.one_of(numbers) : std::to_string(bytes));
  if (oddity.odd()) add_entry(tensor, "location", choices.one_of(places));
}

}  // namespace

int64_t Oddity::integer() {
  return choices_.one_of(odd_integers);
}

int64_t Oddity::extent() {
  const int64_t drawn = integer();
  return drawn < 0 || drawn > power(40) ? integer() : drawn;
}

double Oddity::real() {
  return choices_.one_of(odd_reals);
}

int32_t Oddity::type() {
  constexpr int32_t known = 25, absurd = 1 << 30;
  const auto type = static_cast<int32_t>(choices_.below(known + 2));
  return type == known ? -1 : type > known ? absurd : type;
}

std::vector<int64_t> Oddity::extents() {
  constexpr size_t common = 10, large = 80, huge = 3000;
  size_t rank = choices_.below(common);
  if (choices_.below(20) == 0) rank = choices_.below(large);
  if (choices_.below(400) == 0) rank = huge;
  std::vector<int64_t> extents;
  for (size_t d = 0; d < rank; ++d) {
    extents.push_back(choices_.holds(60) ? static_cast<int64_t>(choices_.below(4)) : extent());
  }
  return extents;
}

int64_t integer_near(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return most;
  return value < -0x1p63 ? least : static_cast<int64_t>(value);
}

float single_near(double value) {
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
    return std::copysign(std::numeric_limits<float>::infinity(), value > 0 ? 1.0F : -1.0F);
  }
  return static_cast<float>(value);
}

void fill(onnx::TensorProto& tensor, int32_t type, const std::vector<int64_t>& extents,
          const std::vector<double>& elements, Oddity& oddity) {
  Choices& choices = oddity.choices();
  tensor.set_data_type(type);
  for (const int64_t extent : extents) tensor.add_dims(extent);
  std::vector<double> values = elements;
  if (elements.empty()) {
    constexpr size_t different = 3;  // small, so that they are legal as indices
    for (size_t i = 0; i < count_of(extents); ++i) values.push_back(static_cast<double>(i % different));
    if (!values.empty() && oddity.odd()) values[choices.below(values.size())] = oddity.real();
  }
  if (oddity.odd()) values.resize(choices.below(2 * values.size() + 2), oddity.real());
  constexpr size_t percent_outside = 3;
  if (choices.holds(percent_outside)) {
    place_outside(tensor, values.size() * bytes_of(type), oddity);
  } else if (choices.holds(50)) {
    const int32_t stored = oddity.type(type);
    for (const double value : values) add_to_field(tensor, stored, value);
  } else if (type != Type::STRING) {
    tensor.set_raw_data(raw_of(oddity.type(type), values));
  }
}

}  // namespace kiln::fuzz
