// Normalisations for callers that see the tensors of user code in another way than the application gave them.
#pragma once

#include <span>

#include "kiln/norm.h"

namespace kiln {

/// norm_forward(), with `user_tensors` in the place of those that options.epilogue was made with.
void call_norm_forward(Context& context, const Axes& axes, const Tensor& x, const Tensor& y, const NormOptions& options,
                       std::span<const Tensor> user_tensors, Stream stream);

/// norm_backward(), likewise.
void call_norm_backward(Context& context, const Axes& axes, const Tensor& dy, const Tensor& x,
                        const Tensor& inv_deviation, const Tensor& dx, const NormGradientOptions& options,
                        std::span<const Tensor> user_tensors, Stream stream);

}  // namespace kiln
