// Tensor: a view of device memory with an element type, extents and strides. A view owns no memory.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "kiln/base/cxx20.h"
#include "kiln/generator/tensor_spec.h"

namespace kiln {

inline constexpr DType f32 = DType::f32;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i8 = DType::i8;
inline constexpr DType u8 = DType::u8;
inline constexpr DType f8e4m3 = DType::f8e4m3;
inline constexpr DType f8e5m2 = DType::f8e5m2;

/// A memory order by name, outermost dimension first; see dimension_letters(). Extents are given in logical order
/// (N C spatial, for filters K C/groups window) whatever the layout.
struct Layout {
  std::string_view order;
};

/// Logical order without gaps, for any rank.
inline constexpr Layout contiguous{""};
inline constexpr Layout nc{"nc"};
inline constexpr Layout nchw{"nchw"};
inline constexpr Layout nhwc{"nhwc"};

class CallKey;

/// A view of device memory. Small, copyable, no allocation.
class Tensor {
 public:
  static constexpr int max_rank = 6;  ///< 6 only in normalisations (N,G,C/G) and filters of regions (local_conv.h).

  /// `data`: device address of the first element. The pointer is const, because the operation decides whether a Tensor
  /// is read or written (outputs are called y). Throws Error(invalid_argument) for an unknown dtype, fewer than 1 or
  /// more than 6 extents, a negative extent, more than 2^58 elements, and a layout that does not name the dimensions of
  /// that many extents.
  Tensor(const void* data, DType dtype, std::span<const int64_t> extents, Layout layout);
  Tensor(const void* data, DType dtype, std::initializer_list<int64_t> extents, Layout layout)
      : Tensor(data, dtype, std::span(extents.begin(), extents.size()), layout) {}

  /// The same with strides in elements, in the order of the extents, each 0 or more: for sub-regions and other
  /// arrangements. Throws as above, also for another number of strides and for negative strides.
  Tensor(const void* data, DType dtype, std::span<const int64_t> extents, std::span<const int64_t> strides);
  Tensor(const void* data, DType dtype, std::initializer_list<int64_t> extents, std::initializer_list<int64_t> strides)
      : Tensor(data, dtype, std::span(extents.begin(), extents.size()), std::span(strides.begin(), strides.size())) {}

  const void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  /// In logical order, rank() of each.
  std::span<const int64_t> extents() const { return {extents_.data(), static_cast<size_t>(rank_)}; }
  std::span<const int64_t> strides() const { return {strides_.data(), static_cast<size_t>(rank_)}; }
  /// Both throw Error(invalid_argument) unless 0 <= dimension < rank().
  int64_t extent(int dimension) const { return extents_[at(dimension)]; }
  int64_t stride(int dimension) const { return strides_[at(dimension)]; }
  /// The largest power of two, in bytes, that divides the address; at most default_alignment.
  int alignment() const {
    return 1 << std::countr_zero(reinterpret_cast<uintptr_t>(data_) | uintptr_t{default_alignment});
  }
  bool empty() const { return span_bytes_ == 0; }
  /// Bytes from the first element's address to the end of the last element; 0 for an empty tensor.
  int64_t span_bytes() const { return span_bytes_; }

  /// Dtype, extents, strides and alignment, as a request holds them.
  TensorSpec spec() const;

 private:
  friend class CallKey;

  size_t at(int dimension) const {
    if (dimension < 0 || dimension >= rank_) refuse_dimension(dimension);
    return static_cast<size_t>(dimension);
  }
  [[noreturn]] void refuse_dimension(int dimension) const;

  const void* data_;
  DType dtype_;
  int rank_;
  std::array<int64_t, max_rank> extents_{};  // zeros behind the rank
  std::array<int64_t, max_rank> strides_{};
  int64_t span_bytes_;
};

}  // namespace kiln
