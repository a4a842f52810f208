// Dimensions of a tensor that are one run in memory, and can be taken for one dimension.
#pragma once

#include <optional>
#include <span>

#include "kiln/tensor.h"

namespace kiln {

/// The stride, in elements, between neighbours of the run that the dimensions `order` of `tensor` are, outermost first:
/// each continues what the inner ones reach. Extents of 1 have no say, whatever their strides are; of no or one element
/// it is 1. Nothing if there are gaps.
inline std::optional<int64_t> stride_of_run(const Tensor& tensor, std::span<const int> order) {
  if (tensor.empty()) return 1;
  int64_t elements = 1, stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t extent = tensor.extent(order[i]);
    if (extent == 1) continue;
    if (elements == 1) stride = tensor.stride(order[i]);
    if (tensor.stride(order[i]) != stride * elements) return std::nullopt;
    elements *= extent;
  }
  return stride;
}

}  // namespace kiln
