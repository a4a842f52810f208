// CallShape: what the definition of an operation says about each of its calls.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "call_key.h"
#include "kiln/generator/operation.h"

namespace kiln {

struct OperandShape {
  std::string_view name;
  uint32_t may_be = 0;  ///< Bit i: operand number i may be the same tensor.
};

/// A FurtherBlend.
struct BlendShape {
  std::string_view name;
  size_t scalar = 0;  ///< The place of its alpha in Operation::scalars(); its beta stands behind it.
};

/// Immutable, one for each operation.
struct CallShape {
  const Operation* operation = nullptr;
  int64_t number = 0;                  ///< Index of the operation in operations().
  std::vector<OperandShape> operands;  ///< In the order of Operation::operands().
  uint32_t written = 0;                ///< Bit i: operand number i is.
  std::vector<BlendShape> blends;      ///< In the order of Operation::further_blends().
};

/// Returns the shape of the operation of that name. Throws Error(invalid_argument) listing the known names.
const CallShape& call_shape(std::string_view operation);

/// The name of an operation as a template's argument.
template <size_t Size>
struct OperationName {
  constexpr OperationName(const char (&text)[Size]) {  // NOLINT(google-explicit-constructor, *-avoid-c-arrays)
    std::copy_n(text, Size, characters.begin());
  }
  constexpr std::string_view view() const { return {characters.data(), Size - 1}; }

  std::array<char, Size> characters{};
};

/// The same, looked for once a process.
template <OperationName name>
const CallShape& call_shape() {
  static const CallShape& shape = call_shape(name.view());
  return shape;
}

}  // namespace kiln
