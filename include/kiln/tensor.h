// Tensor: device memory with an element type, extents and strides. A view: it owns nothing.
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

  /// `data`: device address of the first element. The pointer is const because a Tensor does not say whether it is read
  /// or written: the operation does (outputs are called y).
  /// Throws Error(invalid_argument): no such dtype, not 1 to 6 extents, a negative one, more than 2^58 elements, a
  /// layout that does not name the dimensions of that many extents.
  Tensor(const void* data, DType dtype, std::span<const int64_t> extents, Layout layout);
  Tensor(const void* data, DType dtype, std::initializer_list<int64_t> extents, Layout layout)
      : Tensor(data, dtype, std::span(extents.begin(), extents.size()), layout) {}

  /// Strides in elements, in the order of the extents: sub-regions and any other arrangement that strides of 0 or more
  /// describe. Throws as above, and for another number of strides and negative ones.
  Tensor(const void* data, DType dtype, std::span<const int64_t> extents, std::span<const int64_t> strides);
  Tensor(const void* data, DType dtype, std::initializer_list<int64_t> extents, std::initializer_list<int64_t> strides)
      : Tensor(data, dtype, std::span(extents.begin(), extents.size()), std::span(strides.begin(), strides.size())) {}

  const void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  /// In logical order, as many as rank().
  std::span<const int64_t> extents() const { return {extents_.data(), static_cast<size_t>(rank_)}; }
  std::span<const int64_t> strides() const { return {strides_.data(), static_cast<size_t>(rank_)}; }
  /// Throw Error(invalid_argument) unless 0 <= dimension < rank().
  int64_t extent(int dimension) const { return extents_[at(dimension)]; }
  int64_t stride(int dimension) const { return strides_[at(dimension)]; }
  /// Bytes, a power of two, that the address is a multiple of: at most default_alignment.
  int alignment() const {
    return 1 << std::countr_zero(reinterpret_cast<uintptr_t>(data_) | uintptr_t{default_alignment});
  }
  bool empty() const { return span_bytes_ == 0; }
  /// From the first element's address to behind the last one's; 0 if it is empty.
  int64_t span_bytes() const { return span_bytes_; }

  /// What a request knows of this tensor.
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
