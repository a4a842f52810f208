#include "kiln/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "kiln/base/error.h"

namespace kiln {
namespace {

int checked_rank(size_t rank) {
  if (rank >= 1 && rank <= Tensor::max_rank) return static_cast<int>(rank);
  throw Error(ErrorCode::invalid_argument, fmt::format("a tensor has {} dimensions", rank), "give 1 to 6 extents");
}

// A dtype from a C program or a cast may be none of kiln::DType.
DType checked_dtype(DType dtype) {
  if (is_dtype(dtype)) return dtype;
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no dtype {}", static_cast<int>(dtype)),
              "give one of kiln::DType");
}

// The same limit as a request's: what lies below it can be multiplied by an element's size without overflow.
constexpr int64_t max_span = int64_t{1} << 58;

[[noreturn]] void refuse_size() {
  throw Error(ErrorCode::invalid_argument, "a tensor has more than 2^58 elements", "check its extents and strides");
}

void require_not_negative(std::string_view what, std::span<const int64_t> values) {
  for (const int64_t value : values) {
    if (value >= 0) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("a tensor has the negative {} {}", what, value),
                "extents and strides are 0 or more elements");
  }
}

// The elements from the first to the last, none if an extent is 0. Throws unless that is within max_span.
int64_t checked_span(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    int64_t reach = 0;
    const bool overflows = __builtin_mul_overflow(std::max<int64_t>(extents[i] - 1, 0), strides[i], &reach);
    if (overflows || reach >= max_span || (last += reach) >= max_span) refuse_size();
  }
  return std::ranges::find(extents, 0) == extents.end() ? last + 1 : 0;
}

}  // namespace

Tensor::Tensor(const void* data, DType dtype, std::span<const int64_t> extents, Layout layout)
    : data_(data), dtype_(checked_dtype(dtype)), rank_(checked_rank(extents.size())) {
  require_not_negative("extent", extents);
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
    if (__builtin_mul_overflow(stride, std::max<int64_t>(extents_[dimension], 1), &stride)) refuse_size();
  }
  span_bytes_ = checked_span(this->extents(), this->strides()) * size_of(dtype_);
}

Tensor::Tensor(const void* data, DType dtype, std::span<const int64_t> extents, std::span<const int64_t> strides)
    : data_(data), dtype_(checked_dtype(dtype)), rank_(checked_rank(extents.size())) {
  if (strides.size() != extents.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} strides for {} extents", strides.size(), extents.size()),
                "give one stride a dimension");
  }
  require_not_negative("extent", extents);
  require_not_negative("stride", strides);
  std::copy(extents.begin(), extents.end(), extents_.begin());
  std::copy(strides.begin(), strides.end(), strides_.begin());
  span_bytes_ = checked_span(this->extents(), this->strides()) * size_of(dtype_);
}

void Tensor::refuse_dimension(int dimension) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("dimension {} of a tensor of {} dimensions", dimension, rank_),
              "count from 0, below rank()");
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
