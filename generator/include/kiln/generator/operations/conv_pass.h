// What the typed views of convolution and of its gradients share: pads, strides, dilations, groups, arithmetic, blend.
#pragma once

#include <cstdint>

#include "kiln/generator/request.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

/// The parameters of the convolution that is asked for, or whose gradient is, and those of the call.
struct ConvPass : WindowSteps {
  int64_t groups = 1;
  bool mirrored = false;  ///< mode=convolution
  Arithmetic arithmetic;
  Blend blend;
  bool dynamic_batch = false;
};

}  // namespace kiln
