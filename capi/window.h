// From the options of windowed operations to those of the C++ API.
#pragma once

#include <cstdint>

namespace kiln::capi {

/// Values over the spatial dimensions of a tensor under the names of the C++ API.
struct Named {
  int64_t d, h, w;
};

/// Names the values of a tensor of `rank` dimensions; `missing` for spatial dimensions that it does not have.
inline Named named(const int64_t* values, int rank, int64_t missing) {
  if (rank == 3) return {missing, missing, values[0]};
  if (rank == 5) return {values[0], values[1], values[2]};
  return {missing, values[0], values[1]};
}

/// Fields over the spatial dimensions, of the options of windowed operations: those that they have.
template <class Given, class Options>
void set_window(const Given& given, int rank, Options& options) {
  const Named begin = named(given.pad_begin, rank, 0), end = named(given.pad_end, rank, 0);
  const Named stride = named(given.stride, rank, 1), dilation = named(given.dilation, rank, 1);
  options.pad = {begin.h, begin.w, end.h, end.w};
  options.stride = {stride.h, stride.w};
  options.dilation = {dilation.h, dilation.w};
  options.depth.pad_front = begin.d;
  options.depth.pad_back = end.d;
  options.depth.stride = stride.d;
  options.depth.dilation = dilation.d;
  if constexpr (requires { given.window; }) {
    const Named window = named(given.window, rank, 0);
    options.window = {window.h, window.w};
    options.depth.window = window.d;
  }
  if constexpr (requires { given.grid; }) {
    const Named grid = named(given.grid, rank, 0);
    options.grid = {.h = grid.h, .w = grid.w, .d = grid.d};
  }
}

}  // namespace kiln::capi
