// Storage types of tensor elements: one row each, from which everything else about them is told.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

/// How an element is stored. Arithmetic is in f32 whatever the storage.
enum class DType {
  f32,     ///< IEEE binary32
  f16,     ///< IEEE binary16
  bf16,    ///< bfloat16: the upper half of a binary32
  i32,     ///< 32 bits, two's complement; f32 arithmetic holds its values up to 2^24 exactly
  i8,      ///< 8 bits, two's complement
  u8,      ///< 8 bits, no sign
  f8e4m3,  ///< OCP E4M3 (E4M3FN): 4 bits of exponent, 3 of fraction, NaN but no infinity; up to 448
  f8e5m2,  ///< OCP E5M2: 5 bits of exponent, 2 of fraction, NaN and infinities; up to 57344
};

/// Traits of a storage type. Its code in CUDA text is its index among the rows.
struct DTypeTraits {
  DType dtype;
  std::string_view name;  ///< In requests, and of the type in CUDA text.
  int bytes;              ///< Bytes of one element.
  bool floating = false;  ///< Whether elements have an exponent, and so fractions and NaN.
  /// Digits of a floating-point significand, the implicit digit included, and the exponent of the least normal number.
  int digits = 0, least_exponent = 0;
  double least, largest;  ///< Finite values.
  bool has_infinity = false;
  bool saturates = false;      ///< A store of a larger value gives the largest one; otherwise infinity.
  bool may_hold_sums = false;  ///< Whether requests that permit `fast` arithmetic permit sums in this type.
  std::string_view piece{};    ///< File of lib/ with its CUDA type; empty for types of every source (lib/types.cuh).
};

inline constexpr std::array dtype_rows = {
    DTypeTraits{.dtype = DType::f32,
                .name = "f32",
                .bytes = 4,
                .floating = true,
                .digits = 24,
                .least_exponent = -126,
                .least = -0x1.fffffep127,
                .largest = 0x1.fffffep127,
                .has_infinity = true},
    DTypeTraits{.dtype = DType::f16,
                .name = "f16",
                .bytes = 2,
                .floating = true,
                .digits = 11,
                .least_exponent = -14,
                .least = -65504,
                .largest = 65504,
                .has_infinity = true,
                .may_hold_sums = true},
    DTypeTraits{.dtype = DType::bf16,
                .name = "bf16",
                .bytes = 2,
                .floating = true,
                .digits = 8,
                .least_exponent = -126,
                .least = -0x1.fep127,
                .largest = 0x1.fep127,
                .has_infinity = true,
                .may_hold_sums = true},
    DTypeTraits{
        .dtype = DType::i32, .name = "i32", .bytes = 4, .least = -0x1p31, .largest = 0x1p31 - 1, .saturates = true},
    DTypeTraits{.dtype = DType::i8, .name = "i8", .bytes = 1, .least = -128, .largest = 127, .saturates = true},
    DTypeTraits{.dtype = DType::u8, .name = "u8", .bytes = 1, .least = 0, .largest = 255, .saturates = true},
    DTypeTraits{.dtype = DType::f8e4m3,
                .name = "f8e4m3",
                .bytes = 1,
                .floating = true,
                .digits = 4,
                .least_exponent = -6,
                .least = -448,
                .largest = 448,
                .saturates = true,
                .piece = "lib/fp8.cuh"},
    DTypeTraits{.dtype = DType::f8e5m2,
                .name = "f8e5m2",
                .bytes = 1,
                .floating = true,
                .digits = 3,
                .least_exponent = -14,
                .least = -57344,
                .largest = 57344,
                .has_infinity = true,
                .saturates = true,
                .piece = "lib/fp8.cuh"},
};

/// Every one, in the order of the rows.
inline constexpr std::array<DType, dtype_rows.size()> all_dtypes = [] {
  std::array<DType, dtype_rows.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = dtype_rows[i].dtype;
  return all;
}();
static_assert(
    [] {
      for (size_t i = 0; i < all_dtypes.size(); ++i) {
        if (static_cast<size_t>(all_dtypes[i]) != i) return false;
      }
      return true;
    }(),
    "the rows stand in the order of DType");

/// Whether there is such a type; a number that was cast to DType may be none.
constexpr bool is_dtype(DType dtype) {
  return static_cast<size_t>(dtype) < dtype_rows.size();
}
/// Traits of a known type.
constexpr const DTypeTraits& traits(DType dtype) {
  return dtype_rows[static_cast<size_t>(dtype)];
}

/// Whether its elements have an exponent, and so fractions and NaN.
constexpr bool is_floating(DType dtype) {
  return is_dtype(dtype) && traits(dtype).floating;
}
/// Bytes of one element; 0 for no type.
constexpr int size_of(DType dtype) {
  return is_dtype(dtype) ? traits(dtype).bytes : 0;
}
/// "f32", "f16", ...; "?" for no type.
constexpr std::string_view to_string(DType dtype) {
  return is_dtype(dtype) ? traits(dtype).name : "?";
}
/// The inverse of to_string; nothing for any other text.
std::optional<DType> parse_dtype(std::string_view text);

/// A set of storage types.
class DTypes {
 public:
  constexpr DTypes() = default;
  constexpr DTypes(std::initializer_list<DType> dtypes) {
    for (const DType dtype : dtypes) bits_ |= bit(dtype);
  }

  constexpr bool holds(DType dtype) const { return is_dtype(dtype) && (bits_ & bit(dtype)) != 0; }
  constexpr DTypes operator|(DTypes other) const {
    other.bits_ |= bits_;
    return other;
  }
  constexpr bool operator==(const DTypes&) const = default;

  static const DTypes only_f32, only_i32;
  static const DTypes floating;  ///< f32, f16, bf16: what every operation on numbers with fractions takes.
  static const DTypes fp8;       ///< f8e4m3, f8e5m2: storage of products, softmax, activations and copies.
  static const DTypes floating_or_fp8;
  static const DTypes integers;
  static const DTypes factors;  ///< Factors of products: floating_or_fp8, i8 and u8.
  static const DTypes any;

 private:
  static constexpr uint32_t bit(DType dtype) { return uint32_t{1} << static_cast<uint32_t>(dtype); }

  uint32_t bits_ = 0;
};

inline constexpr DTypes DTypes::only_f32 = {DType::f32};
inline constexpr DTypes DTypes::only_i32 = {DType::i32};
inline constexpr DTypes DTypes::floating = {DType::f32, DType::f16, DType::bf16};
inline constexpr DTypes DTypes::fp8 = {DType::f8e4m3, DType::f8e5m2};
inline constexpr DTypes DTypes::integers = {DType::i32, DType::i8, DType::u8};
inline constexpr DTypes DTypes::floating_or_fp8 = DTypes::floating | DTypes::fp8;
inline constexpr DTypes DTypes::factors = DTypes::floating_or_fp8 | DTypes{DType::i8, DType::u8};
inline constexpr DTypes DTypes::any = DTypes::floating_or_fp8 | DTypes::integers;
static_assert(
    [] {
      for (const DType dtype : all_dtypes) {
        if (!DTypes::any.holds(dtype)) return false;
      }
      return true;
    }(),
    "each type is in one of the sets that make up `any`");

/// "f32, f16 or bf16", in the order of the rows.
std::string to_string(DTypes dtypes);

}  // namespace kiln
