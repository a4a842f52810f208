#include "kiln/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "kiln/base/error.h"

namespace kiln {
namespace {

int checked_rank(size_t rank) {
  if (rank >= 1 && rank <= Tensor::max_rank) return static_cast<int>(rank);
  throw Error(ErrorCode::invalid_argument, fmt::format("a tensor has {} dimensions", rank), "give 1 to 5 extents");
}

}  // namespace

Tensor::Tensor(const void* data, DType dtype, std::span<const int64_t> extents, Layout layout)
    : data_(data), dtype_(dtype), rank_(checked_rank(extents.size())) {
  std::copy(extents.begin(), extents.end(), extents_.begin());
  const std::string_view letters = dimension_letters(rank_);
  const std::string_view order = layout.order.empty() ? letters : layout.order;
  if (order.size() != letters.size() || !std::is_permutation(order.begin(), order.end(), letters.begin())) {
    throw Error(ErrorCode::invalid_argument, fmt::format("layout '{}' does not fit {} extents", order, rank_),
                fmt::format("use the letters {} in memory order, or give strides", letters));
  }
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t dimension = letters.find(order[i]);
    strides_[dimension] = stride;
    stride *= std::max<int64_t>(extents_[dimension], 1);
  }
}

Tensor::Tensor(const void* data, DType dtype, std::span<const int64_t> extents, std::span<const int64_t> strides)
    : data_(data), dtype_(dtype), rank_(checked_rank(extents.size())) {
  if (strides.size() != extents.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} strides for {} extents", strides.size(), extents.size()),
                "give one stride a dimension");
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
  std::copy(strides.begin(), strides.end(), strides_.begin());
}

int Tensor::alignment() const {
  const auto address = reinterpret_cast<uintptr_t>(data_) | default_alignment;
  return 1 << std::countr_zero(address);
}

bool Tensor::empty() const {
  return std::any_of(extents_.begin(), extents_.begin() + rank_, [](int64_t extent) { return extent == 0; });
}

TensorSpec Tensor::spec() const {
  TensorSpec spec;
  spec.dtype = dtype_;
  spec.extents.assign(extents_.begin(), extents_.begin() + rank_);
  spec.strides.assign(strides_.begin(), strides_.begin() + rank_);
  spec.alignment = alignment();
  return spec;
}

}  // namespace kiln
