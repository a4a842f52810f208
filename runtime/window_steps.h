// From the named pads, strides and dilations of options to one value a spatial axis, as requests have them.
#pragma once

#include <cstdint>
#include <vector>

#include "call_key.h"
#include "kiln/generator/window_axis.h"
#include "kiln/tensor.h"

namespace kiln {

/// {w}, {h, w} or {d, h, w}: as many as `x` has dimensions behind N and C.
inline std::vector<int64_t> per_axis(const Tensor& x, int64_t d, int64_t h, int64_t w) {
  if (x.rank() == 3) return {w};
  if (x.rank() == 5) return {d, h, w};
  return {h, w};
}

/// For the spatial axes of `x`.
template <class Options>
WindowSteps steps_of(const Tensor& x, const Options& options) {
  return {.pad_begin = per_axis(x, options.depth.pad_front, options.pad.top, options.pad.left),
          .pad_end = per_axis(x, options.depth.pad_back, options.pad.bottom, options.pad.right),
          .stride = per_axis(x, options.depth.stride, options.stride.h, options.stride.w),
          .dilation = per_axis(x, options.depth.dilation, options.dilation.h, options.dilation.w)};
}

/// Adds them to the key of a call, for whatever axes there are.
template <class Options>
void add_steps(CallKey& key, const Options& options) {
  for (int64_t value : {options.pad.top, options.pad.left, options.pad.bottom, options.pad.right, options.stride.h,
                        options.stride.w, options.dilation.h, options.dilation.w, options.depth.pad_front,
                        options.depth.pad_back, options.depth.stride, options.depth.dilation}) {
    key.add(value);
  }
}

}  // namespace kiln
