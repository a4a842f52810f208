// Fields of the C options as members of the C++ options.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kiln/activation.h"
#include "kiln/base/error.h"
#include "kiln/kiln.h"
#include "tensor.h"

namespace kiln::capi {

/// The word of that number, of those from 0 to `last`. Throws Error(invalid_argument) "<function>: <what> is <number>"
/// for any other; `hint` names the words.
template <class Word>
Word word_of(int32_t number, int32_t last, std::string_view function, std::string_view what, const char* hint) {
  if (number >= 0 && number <= last) return static_cast<Word>(number);
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} is {}", function, what, number), hint);
}

/// The tensor, or nothing for NULL. Throws as tensor_of().
inline std::optional<Tensor> optional_of(const kiln_tensor* tensor, std::string_view function, std::string_view name) {
  return tensor == nullptr ? std::nullopt : std::optional(tensor_of(tensor, function, name));
}

/// The activation of the mode and numbers that `given` holds; none for NULL, which is not the default of an activation
/// by itself. Throws Error(invalid_argument) as options_of() does.
Activation activation_of(const kiln_activation_options* given, const char* function);

/// Copies as many elements as `option` has.
template <class Value, size_t count, size_t given_count>
void copy_to(std::array<Value, count>& option, const Value (&given)[given_count]) {
  static_assert(count <= given_count);
  std::copy_n(given, count, option.begin());
}

}  // namespace kiln::capi
