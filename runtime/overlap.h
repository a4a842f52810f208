// Whether tensors of one call share memory.
#pragma once

#include <cstdint>

#include "kiln/tensor.h"

namespace kiln {

/// From a tensor's first byte to behind its last.
struct MemoryRange {
  uintptr_t begin, end;

  bool meets(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

inline MemoryRange memory_range(const Tensor& tensor) {
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data());
  return {begin, begin + static_cast<uintptr_t>(tensor.span_bytes())};
}

/// Whether an element of `a` is one of `b`, whose ranges of memory meet. Exact for regions of one tensor (channels
/// y[..., 0:8] and x[..., 8:16], say); yes where it would take long to find out, and for tensors of different dtypes.
bool share_elements(const Tensor& a, const Tensor& b);

/// Whether two tensors are the same elements at the same positions.
bool is_same_view(const Tensor& a, const Tensor& b);

}  // namespace kiln
