// CallKey: a call's shape as plain numbers, so that a plan is found without building its request's text.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "kiln/generator/expression.h"
#include "kiln/tensor.h"

namespace kiln {

/// Everything of an operation call that shapes its request. Two calls with equal keys make equal requests. (Equal
/// requests may come from different keys, of tensors whose irrelevant strides differ: they share one plan.)
class CallKey {
 public:
  static constexpr size_t max_text = 512;  ///< Bytes.

  void add(int64_t value) { words_[size_++] = value; }
  void add(const Tensor& tensor) {
    add(static_cast<int64_t>(tensor.dtype()) | int64_t{tensor.rank()} << 8 | int64_t{tensor.alignment()} << 16);
    for (int i = 0; i < tensor.rank(); ++i) add(tensor.extent(i));
    for (int i = 0; i < tensor.rank(); ++i) add(tensor.stride(i));
  }
  /// `text`: max_text bytes at the most.
  void add(std::string_view text) {
    add(static_cast<int64_t>(text.size()));
    const size_t words = (text.size() + sizeof(int64_t) - 1) / sizeof(int64_t);
    if (words > 0) words_[size_ + words - 1] = 0;  // of which the text may fill a part
    std::memcpy(&words_[size_], text.data(), text.size());
    size_ += words;
  }

  /// XXH3 of the words.
  uint64_t hash() const;
  bool operator==(const CallKey& other) const {
    return size_ == other.size_ && std::memcmp(words_.data(), other.words_.data(), size_ * sizeof(int64_t)) == 0;
  }

 private:
  // The largest: the gradients of a normalisation, with twelve operands, and user code with as many as it may read; or
  // a call by name. A convolution has the most numbers beside its operands, 19; a digest has two more.
  static constexpr size_t of_tensor = 1 + 2 * Tensor::max_rank;
  static constexpr size_t of_text = 1 + max_text / sizeof(int64_t);
  static constexpr size_t capacity = (12 + Expression::max_tensors) * of_tensor + of_text + 32;

  // Not initialised: only the first size_ words have a meaning, and writing the rest would cost as much as the look-up.
  std::array<int64_t, capacity> words_;
  size_t size_ = 0;
};

}  // namespace kiln
