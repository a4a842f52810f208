// CallKey: a call's shape as plain numbers, so that a plan is found without building its request's text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "kiln/generator/expression.h"
#include "kiln/tensor.h"

namespace kiln {

/// Everything of an operation call that shapes its request. Two calls with equal keys make equal requests. (Equal
/// requests may come from different keys, of tensors whose irrelevant strides differ: they share one plan.)
class CallKey {
 public:
  using Word = uint32_t;
  static constexpr size_t max_text = 512;  ///< Bytes.

  /// What is hashed and compared costs by the byte, and most numbers of a call are small: those of 31 bits are a word.
  /// A group with another one is a mark and two words for each of its numbers.
  template <size_t Count>
  void add(const std::array<int64_t, Count>& values) {
    add_each(values, std::make_index_sequence<Count>());
  }
  void add(int64_t value) { add(std::array{value}); }
  void add(const Tensor& tensor) {
    add(static_cast<int64_t>(tensor.dtype()) | int64_t{tensor.rank()} << 8 | int64_t{tensor.alignment()} << 16);
    add(tensor.extents_);  // with the zeros behind the rank: copies of a fixed size are the faster ones
    add(tensor.strides_);
  }
  /// `text`: max_text bytes at the most.
  void add(std::string_view text) {
    add(static_cast<int64_t>(text.size()));
    const size_t words = (text.size() + sizeof(Word) - 1) / sizeof(Word);
    if (words > 0) words_[size_ + words - 1] = 0;  // of which the text may fill a part
    std::memcpy(&words_[size_], text.data(), text.size());
    size_ += words;
  }

  /// XXH3 of the words.
  uint64_t hash() const;
  std::span<const Word> words() const { return {words_.data(), size_}; }
  bool operator==(const CallKey& other) const { return std::ranges::equal(words(), other.words()); }

 private:
  static constexpr Word wide = ~Word{0};

  // The largest: the gradients of a normalisation, with twelve operands, and user code with as many as it may read; or
  // a call by name. A convolution has the most numbers beside its operands, 19; a digest has two more. A number takes
  // three words at the most.
  static constexpr size_t of_tensor = 1 + 2 * Tensor::max_rank;
  static constexpr size_t of_text = 1 + max_text / sizeof(Word);
  static constexpr size_t capacity = ((12 + Expression::max_tensors) * of_tensor + 32) * 3 + of_text;

  // One test for all of them, and no loop.
  template <size_t... I>
  void add_each(const std::array<int64_t, sizeof...(I)>& values, std::index_sequence<I...>) {
    if (static_cast<uint64_t>((values[I] | ...)) >> 31 != 0) return add_wide(values);
    ((words_[size_ + I] = static_cast<Word>(values[I])), ...);
    size_ += sizeof...(I);
  }
  void add_wide(std::span<const int64_t> values);

  // Not initialised: only the first size_ words have a meaning, and writing the rest would cost as much as the look-up.
  std::array<Word, capacity> words_;
  size_t size_ = 0;
};

}  // namespace kiln
