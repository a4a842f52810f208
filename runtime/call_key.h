// CallKey: a call's shape as plain numbers, so that a plan is found without building its request's text.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kiln/generator/expression.h"
#include "kiln/tensor.h"

namespace kiln {

/// The most operands that an operation may have, those of user code aside; a layer's gradients have fourteen.
inline constexpr size_t max_call_operands = 16;

/// Everything of an operation call that shapes its request. Two calls with equal keys make equal requests. (Equal
/// requests may come from different keys, of tensors whose irrelevant strides differ: they share one plan.)
///
/// Hashing and comparing cost by the byte, and most numbers of a call are small: two of 31 bits are a word. The hash
/// reads whole words just after they are written, so they are written whole: a processor that has to put a word
/// together from smaller writes waits until these have left it.
class CallKey {
 public:
  using Word = uint64_t;
  static constexpr size_t max_text = 512;  ///< Bytes.

  /// A word, whatever it is.
  void add(int64_t value) { words_[size_++] = static_cast<Word>(value); }
  /// Two in a word. A group in which a number needs more than 31 bits is a mark and a word for each.
  template <class... Numbers>
  void add(int64_t first, int64_t second, Numbers... further) {
    if (is_wide(((first | second) | ... | further))) {
      return add_wide(std::array{first, second, int64_t{further}...});
    }
    add_pairs(first, second, further...);
  }
  void add(const Tensor& tensor) {
    add(static_cast<int64_t>(tensor.dtype()) | tensor.rank() << 8 | tensor.alignment() << 16);
    int64_t all = 0;
    for (size_t i = 0; i < Tensor::max_rank; ++i) all |= tensor.extents_[i] | tensor.strides_[i];
    if (is_wide(all)) {
      add_wide(tensor.extents());
      return add_wide(tensor.strides());
    }
    // As many as there may be, which is faster than as many as there are; what follows is written over the rest.
    Word* const to = &words_[size_];
    for (size_t i = 0; i < Tensor::max_rank; ++i) to[i] = pair(tensor.extents_[i], tensor.strides_[i]);
    size_ += static_cast<size_t>(tensor.rank());
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

 private:
  // The largest: an operation of the most operands, and user code with as many as it may read; or a call by name. A
  // convolution has the most numbers beside its operands, 19; a digest has two more.
  static constexpr size_t of_tensor = 3 + 2 * Tensor::max_rank;
  static constexpr size_t of_text = 1 + max_text / sizeof(Word);
  static constexpr size_t capacity = (max_call_operands + Expression::max_tensors) * of_tensor + 64 + of_text;

  static bool is_wide(int64_t any) { return static_cast<Word>(any) >> 31 != 0; }
  static Word pair(int64_t low, int64_t high) { return static_cast<Word>(low) | static_cast<Word>(high) << 32; }
  void add_pairs() {}
  template <class... Numbers>
  void add_pairs(int64_t first, int64_t second, Numbers... further) {
    words_[size_++] = pair(first, second);
    add_pairs(further...);
  }
  void add_wide(std::span<const int64_t> values);

  // Not initialised: only the first size_ words have a meaning, and writing the rest would cost as much as the look-up.
  std::array<Word, capacity> words_;
  size_t size_ = 0;
};

}  // namespace kiln
