// How prologue_slack() walks along large tensors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kiln/base/parallel.h"
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
/// several times: on all of the machine's threads, neighbours one after the other, without a call or a coordinate for
/// each.
class Rows {
 public:
  Rows(const TensorSpec& shape, const std::vector<int64_t>& axes)
      : extents_(shape.extents), row_strides_(shape.extents.size()), elements_(static_cast<size_t>(shape.elements())) {
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
    for (size_t d = 0; d < of_row.size() && of_row[d] == extents_[d]; ++d) apart_ *= static_cast<size_t>(extents_[d]);
  }

  size_t count() const { return count_; }
  double length() const { return length_; }

  /// Calls visit(element, row, value of `other`...) for each element, numbered in logical order as the rows are, from
  /// several threads. A tensor that is not there has 1 everywhere.
  template <class Visit, class... Others>
  void for_each(const Visit& visit, const Others&... others) const {
    for_each_part(elements_, least_part, [&](size_t begin, size_t end) { visit_part(begin, end, visit, others...); });
  }

  /// Sums that visit(sum, element, row, value of `other`...) makes of a Sum{} for each row, called as above; parts of a
  /// row are added by +=, in an order that depends on the shape alone.
  template <class Sum, class Visit, class... Others>
  std::vector<Sum> sums(const Visit& visit, const Others&... others) const {
    const auto add = [&](size_t begin, size_t end, std::vector<Sum>& to) {
      const auto to_row = [&](size_t element, size_t row, auto... values) { visit(to[row], element, row, values...); };
      visit_part(begin, end, to_row, others...);
    };
    std::vector<Sum> all(count_);
    if (elements_ == 0) return all;
    if (apart_ > 1) {  // threads have rows of their own
      const size_t size = elements_ / apart_;
      for_each_part(apart_, (least_part + size - 1) / size,
                    [&](size_t begin, size_t end) { add(begin * size, end * size, all); });
      return all;
    }
    std::vector<std::vector<Sum>> of_parts(std::clamp<size_t>(elements_ / (16 * count_), 1, 64));
    for_each_index(of_parts.size(), [&](size_t part) {
      of_parts[part].resize(count_);
      add(elements_ * part / of_parts.size(), elements_ * (part + 1) / of_parts.size(), of_parts[part]);
    });
    for (const std::vector<Sum>& part : of_parts) {
      for (size_t row = 0; row < count_; ++row) all[row] += part[row];
    }
    return all;
  }

 private:
  static constexpr size_t least_part = 4096;  // elements worth a thread

  // A tensor from one element to the next of a run.
  struct Walk {
    DType dtype;
    const std::byte* memory;
    int64_t step;  // bytes
    bool holds_floats() const { return dtype == DType::f32; }
    double at(size_t i) const { return load(dtype, memory + static_cast<int64_t>(i) * step); }
    double float_at(size_t i) const {
      float value = 0;
      std::memcpy(&value, memory + static_cast<int64_t>(i) * step, sizeof value);
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
    static constexpr float one = 1;
    return tensor ? walk(at, *tensor) : Walk{DType::f32, std::as_bytes(std::span(&one, 1)).data(), 0};
  }

  template <class Visit, class... Others>
  void visit_part(size_t begin, size_t end, const Visit& visit, const Others&... others) const {
    const size_t inner = extents_.size() - 1;
    const auto extent = static_cast<size_t>(extents_[inner]), row_step = static_cast<size_t>(row_strides_[inner]);
    std::vector<int64_t> at(extents_.size());
    for (size_t d = extents_.size(), rest = begin; d-- > 0;) {
      at[d] = static_cast<int64_t>(rest % static_cast<size_t>(extents_[d]));
      rest /= static_cast<size_t>(extents_[d]);
    }
    for (size_t element = begin; element < end;) {
      const size_t neighbours = std::min(extent - static_cast<size_t>(at[inner]), end - element);
      const auto row = static_cast<size_t>(along(at, row_strides_));
      visit_run(visit, element, row, neighbours, row_step, walk(at, others)...);
      element += neighbours;
      at[inner] = 0;
      for (size_t d = inner; d > 0 && ++at[d - 1] == extents_[d - 1]; --d) at[d - 1] = 0;
    }
  }

  template <class Visit, class... Walks>
  static void visit_run(const Visit& visit, size_t element, size_t row, size_t neighbours, size_t row_step,
                        const Walks&... walks) {
    if ((walks.holds_floats() && ...)) {  // what most are: without a call for each
      for (size_t i = 0; i < neighbours; ++i) visit(element + i, row + i * row_step, walks.float_at(i)...);
    } else {
      for (size_t i = 0; i < neighbours; ++i) visit(element + i, row + i * row_step, walks.at(i)...);
    }
  }

  std::vector<int64_t> extents_, row_strides_;  // a row's number does not change along its own dimensions
  size_t elements_, count_ = 1,
                    apart_ = 1;  // apart: parts of the tensor, along its first dimensions, that share no row
  double length_ = 1;
};

}  // namespace kiln::reference::slack
