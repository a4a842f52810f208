// CallKey: a call's shape as plain numbers, so that a plan is found without building its request's text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "kiln/epilogue.h"
#include "kiln/tensor.h"

namespace kiln {

/// Everything of an operation call that shapes its request. Two calls with equal keys make equal requests. (Equal
/// requests may come from different keys, of tensors whose irrelevant strides differ: they share one plan.)
class CallKey {
 public:
  /// `kind` tells the operations apart; see the users.
  explicit CallKey(int64_t kind) { add(kind); }

  void add(int64_t value) { words_[size_++] = value; }
  void add(const Tensor& tensor) {
    add(static_cast<int64_t>(tensor.dtype()) | int64_t{tensor.rank()} << 8 | int64_t{tensor.alignment()} << 16);
    for (int i = 0; i < tensor.rank(); ++i) add(tensor.extent(i));
    for (int i = 0; i < tensor.rank(); ++i) add(tensor.stride(i));
  }

  void add(const Epilogue& epilogue) {
    if (epilogue.count() == 0 && !epilogue.code()) return add(int64_t{0});
    add_given(epilogue);
  }

  /// XXH3 of the words.
  uint64_t hash() const;
  bool operator==(const CallKey& other) const {
    return size_ == other.size_ && std::memcmp(words_.data(), other.words_.data(), size_ * sizeof(int64_t)) == 0;
  }

 private:
  // Adds an epilogue that is not empty. Inline it would make every call that takes one 2.5 KB longer.
  void add_given(const Epilogue& epilogue);

  // The largest: the gradients of a normalisation, with twelve operands, and user code with as many as it may read. A
  // convolution has the most numbers beside its operands, 19; a digest has two more.
  static constexpr size_t of_tensor = 1 + 2 * Tensor::max_rank;
  static constexpr size_t capacity = (12 + Expression::max_tensors) * of_tensor + 32;

  // Not initialised: only the first size_ words have a meaning, and writing the rest would cost as much as the look-up.
  std::array<int64_t, capacity> words_;
  size_t size_ = 0;
};

}  // namespace kiln
