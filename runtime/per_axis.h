// From the named values of an operation's options to one value a spatial axis, as requests have them.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/tensor.h"

namespace kiln {

/// {w}, {h, w} or {d, h, w}: as many as `x` has dimensions behind N and C.
inline std::vector<int64_t> per_axis(const Tensor& x, int64_t d, int64_t h, int64_t w) {
  if (x.rank() == 3) return {w};
  if (x.rank() == 5) return {d, h, w};
  return {h, w};
}

}  // namespace kiln
