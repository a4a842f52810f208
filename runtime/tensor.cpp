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

// What a C program or a cast gives may be no dtype at all.
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

// Throws unless the last element is within max_span of the first.
void require_span(const std::array<int64_t, Tensor::max_rank>& extents,
                  const std::array<int64_t, Tensor::max_rank>& strides, int rank) {
  int64_t last = 0;
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    int64_t reach = 0;
    const bool overflows = __builtin_mul_overflow(std::max<int64_t>(extents[at] - 1, 0), strides[at], &reach);
    if (overflows || reach >= max_span || (last += reach) >= max_span) refuse_size();
  }
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
  require_span(extents_, strides_, rank_);
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
  require_span(extents_, strides_, rank_);
}

void Tensor::refuse_dimension(int dimension) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("dimension {} of a tensor of {} dimensions", dimension, rank_),
              "count from 0, below rank()");
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
