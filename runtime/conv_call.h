// Parts shared by the calls of convolution, of local convolution and of their gradients: options with the same members,
// and a grid where filters are local.
#pragma once

#include "operation_call.h"

namespace kiln {

/// All but the tensors and the epilogue. `images`: an operand that has the batch and the spatial axes.
template <class Call, class Options>
void say_convolution(Call& call, const Options& options, const Tensor& images) {
  say_steps(call, options, images);
  call.ints("groups", {options.groups});
  call.word("mode", options.mirrored, "convolution", "cross_correlation");
  if constexpr (requires { options.grid; }) {
    call.per_axis("grid", images, {options.grid.d, options.grid.h, options.grid.w});
  }
  call.arithmetic(options.arithmetic);
  say_common(call, options, images);
}

}  // namespace kiln
