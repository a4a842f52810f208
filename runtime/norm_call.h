// Normalisations for callers that see the tensors of user code in another way than the application gave them.
#pragma once

#include <span>

#include "kiln/norm.h"

namespace kiln {

/// norm_forward(), with `user_tensors` in the place of those that options.epilogue was made with.
void call_norm_forward(Context& context, const Axes& axes, const Tensor& x, const Tensor& y, const NormOptions& options,
                       std::span<const Tensor> user_tensors, Stream stream);

/// norm_affine(), likewise.
void call_norm_affine(Context& context, const Axes& axes, const Tensor& x, const Tensor& scale, const Tensor& shift,
                      const NormAffineOptions& options, std::span<const Tensor> user_tensors, Stream stream);

/// The tensors that every norm_backward() has. Owns nothing.
struct NormGradientTensors {
  const Tensor &dy, &x, &inv_deviation, &dx;
};

/// norm_backward(), likewise.
void call_norm_backward(Context& context, const Axes& axes, const NormGradientTensors& tensors,
                        const NormGradientOptions& options, std::span<const Tensor> user_tensors, Stream stream);

}  // namespace kiln
