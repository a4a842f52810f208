// Storage types of tensor elements.
#pragma once

#include <optional>
#include <string_view>

namespace kiln {

/// How an element is stored. Arithmetic is in f32 whatever the storage.
enum class DType {
  f32,   ///< IEEE binary32
  f16,   ///< IEEE binary16
  bf16,  ///< bfloat16: the upper half of a binary32
};

/// "f32", "f16", "bf16".
std::string_view to_string(DType dtype);
/// The inverse of to_string; nothing for any other text.
std::optional<DType> parse_dtype(std::string_view text);
/// Bytes of one element.
int size_of(DType dtype);

}  // namespace kiln
