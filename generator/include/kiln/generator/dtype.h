// Storage types of tensor elements.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace kiln {

/// How an element is stored. Arithmetic is in f32 whatever the storage.
enum class DType {
  f32,   ///< IEEE binary32
  f16,   ///< IEEE binary16
  bf16,  ///< bfloat16: the upper half of a binary32
  i32,   ///< 32 bits, two's complement; f32 arithmetic holds its values up to 2^24 exactly
  i8,    ///< 8 bits, two's complement
  u8,    ///< 8 bits, no sign
};

/// Every one, in the order above.
inline constexpr std::array<DType, 6> all_dtypes = {DType::f32, DType::f16, DType::bf16,
                                                    DType::i32, DType::i8,  DType::u8};

/// Whether its elements have an exponent, and so fractions, infinities and NaN.
bool is_floating(DType dtype);

/// "f32", "f16", "bf16", "i32", "i8", "u8".
std::string_view to_string(DType dtype);
/// The inverse of to_string; nothing for any other text.
std::optional<DType> parse_dtype(std::string_view text);
/// Bytes of one element.
int size_of(DType dtype);

}  // namespace kiln
