// How prologue_slack() walks along large tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kiln/generator/tensor_spec.h"
#include "kiln/reference/convert.h"

namespace kiln::reference::slack {

/// An input that repeats along what it has one element of.
struct Repeating {
  TensorSpec spec;
  std::span<const std::byte> memory;

  Repeating(TensorSpec given, std::span<const std::byte> bytes) : spec(std::move(given)), memory(bytes) {
    for (size_t i = 0; i < spec.extents.size(); ++i) {
      if (spec.extents[i] == 1) spec.strides[i] = 0;
    }
  }
};

/// Rows of a tensor: all that differ along some dimensions alone. Tensors have millions of elements, which are visited
/// several times: neighbours one after the other, without a call or a coordinate for each.
class Rows {
 public:
  Rows(const TensorSpec& shape, const std::vector<int64_t>& axes)
      : extents_(shape.extents), row_strides_(shape.extents.size()), empty_(shape.elements() == 0) {
    std::vector<int64_t> of_row = extents_;
    for (const int64_t axis : axes) of_row[static_cast<size_t>(axis)] = 1;
    int64_t stride = 1;
    for (size_t d = of_row.size(); d-- > 0;) {
      if (of_row[d] == 1) {
        length_ *= static_cast<double>(extents_[d]);
      } else {
        row_strides_[d] = stride;
      }
      stride *= of_row[d];
    }
    count_ = static_cast<size_t>(stride);
  }

  size_t count() const { return count_; }
  double length() const { return length_; }

  /// Calls visit(element, row, value of `other`...) for each element, numbered in logical order as the rows are. A
  /// tensor that is not there has 1 everywhere.
  template <class Visit, class... Others>
  void for_each(const Visit& visit, const Others&... others) const {
    if (empty_) return;
    const size_t inner = extents_.size() - 1;
    const auto neighbours = static_cast<size_t>(extents_[inner]), row_step = static_cast<size_t>(row_strides_[inner]);
    std::vector<int64_t> at(extents_.size());
    for (size_t element = 0;; element += neighbours) {
      const auto row = static_cast<size_t>(along(at, row_strides_));
      visit_run(visit, element, row, neighbours, row_step, walk(at, others)...);
      size_t d = inner;
      while (d > 0 && ++at[d - 1] == extents_[d - 1]) at[--d] = 0;
      if (d == 0) return;
    }
  }

 private:
  // A tensor from one element to the next of a run.
  struct Walk {
    DType dtype;
    const std::byte* memory;  // null: none
    int64_t step;             // bytes
    double at(size_t i) const {
      if (memory == nullptr) return 1;
      const std::byte* const address = memory + static_cast<int64_t>(i) * step;
      if (dtype != DType::f32) return load(dtype, address);
      float value = 0;  // what most are: in the loop, not in a call
      std::memcpy(&value, address, sizeof value);
      return value;
    }
  };

  static int64_t along(const std::vector<int64_t>& at, const std::vector<int64_t>& strides) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    return offset;
  }
  static Walk walk(const std::vector<int64_t>& at, const Repeating& tensor) {
    const auto size = static_cast<int64_t>(size_of(tensor.spec.dtype));
    return {tensor.spec.dtype, tensor.memory.data() + along(at, tensor.spec.strides) * size,
            tensor.spec.strides.back() * size};
  }
  static Walk walk(const std::vector<int64_t>& at, const std::optional<Repeating>& tensor) {
    return tensor ? walk(at, *tensor) : Walk{};
  }

  template <class Visit, class... Walks>
  static void visit_run(const Visit& visit, size_t element, size_t row, size_t neighbours, size_t row_step,
                        const Walks&... walks) {
    for (size_t i = 0; i < neighbours; ++i) visit(element + i, row + i * row_step, walks.at(i)...);
  }

  std::vector<int64_t> extents_, row_strides_;  // a row's number does not change along its own dimensions
  size_t count_ = 1;
  double length_ = 1;
  bool empty_;
};

}  // namespace kiln::reference::slack
