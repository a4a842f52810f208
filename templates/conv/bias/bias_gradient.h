// Parts shared by the two descriptors of the bias gradient.
#pragma once

#include "descriptor/strided.h"
#include "kiln/generator/operations/conv_backward_bias.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// A request as descriptors see it: dy has three spatial dimensions (with_three_axes()), whatever the request has.
struct BiasGradient : ConvBackwardBias {
  static BiasGradient of(const Request& request);

  Inner inner = Inner::either;  ///< of dy
};

/// The constants of lib/bias_gradient.cuh.
Prelude bias_gradient_prelude(const BiasGradient& gradient);

}  // namespace kiln::descriptor
