// What the calls of convolution, of local convolution and of their gradients share: options with the same members, and
// a grid where filters are local.
#pragma once

#include "kiln/generator/operations/conv_pass.h"
#include "operation_call.h"
#include "window_steps.h"

namespace kiln {

/// The part of a call's key that `options` say, their epilogue aside.
template <class Options>
void add_convolution(CallKey& key, const Options& options) {
  add_steps(key, options);
  key.add(options.groups);
  if constexpr (requires { options.grid; }) {
    for (int64_t regions : {options.grid.d, options.grid.h, options.grid.w}) key.add(regions);
  }
  key.add(flags_of(options, int64_t{options.mirrored} | word_of(options.arithmetic)));
}

/// What `options` say of a request. `like`: an operand that has the spatial axes.
template <class Options>
ConvPass pass_of(const Tensor& like, const Options& options) {
  ConvPass pass;
  static_cast<WindowSteps&>(pass) = steps_of(like, options);
  pass.groups = options.groups;
  pass.mirrored = options.mirrored;
  if constexpr (requires { options.grid; }) {
    pass.grid = per_axis(like, options.grid.d, options.grid.h, options.grid.w);
  }
  pass.arithmetic = options.arithmetic;
  pass.blend = blend_of(options);
  pass.dynamic_batch = options.dynamic_batch;
  return pass;
}

}  // namespace kiln
