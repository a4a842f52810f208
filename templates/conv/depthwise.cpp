#include "conv/depthwise.h"

#include <algorithm>

namespace kiln::descriptor {

std::optional<std::string> depthwise_refusal(const ConvProblem& conv, ConvLayout layout) {
  constexpr int64_t most_taps = 121;  // which the kernels unroll
  if (conv.c_per_group() != 1) return "it is not depthwise: groups is not the number of channels of x";
  if (!is_packed_as(conv, layout)) {
    return layout == ConvLayout::nchw ? "x, w, y and residual are not all packed nchw"
                                      : "x, w, y and residual are not all packed nhwc";
  }
  if (conv.blend.alpha == Scale::zero) return "alpha is zero: there is nothing to multiply";
  if (conv.r() * conv.s() > most_taps) return "a filter has more than 121 taps";
  return std::nullopt;
}

int64_t input_positions(const ConvProblem& conv, int axis, int64_t tile) {
  const auto i = static_cast<size_t>(axis);
  return (tile - 1) * conv.stride[i] + (conv.w.extents[2 + i] - 1) * conv.dilation[i] + 1;
}

int64_t met_positions(const ConvProblem& conv, int axis, int64_t tile) {
  return std::min(input_positions(conv, axis, tile), tile * conv.w.extents[2 + static_cast<size_t>(axis)]);
}

bool tile_suits_the_image(const ConvProblem& conv, int p, int q) {
  return (p == 1 || p < 2 * conv.p()) && (q == 1 || q < 2 * conv.q());
}

int64_t tiles_per_plane(const ConvProblem& conv, int p, int q) {
  return ((conv.p() + p - 1) / p) * ((conv.q() + q - 1) / q);
}

}  // namespace kiln::descriptor
