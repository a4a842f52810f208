// From the options of windowed operations to those of the C++ API.
#pragma once

#include <cstdint>
#include <string_view>

#include "boundary.h"

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

/// Pads, strides and dilations of windowed operations, whose options have the same members.
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
}

/// Sets the options that convolution and its gradients by input and filter have in common.
template <class Given, class Options>
void set_convolution(const Given& given, int rank, std::string_view function, Options& options) {
  set_window(given, rank, options);
  options.groups = given.groups;
  options.mirrored = flag(given.mirrored, function, "mirrored");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.arithmetic.tf32 = flag(given.tf32, function, "tf32");
  options.arithmetic.fast = flag(given.fast, function, "fast");
  options.arithmetic.deterministic = flag(given.deterministic, function, "deterministic");
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
}

}  // namespace kiln::capi
