#include "conv/depthwise/depthwise.h"

#include <algorithm>

#include "descriptor/numbers.h"

namespace kiln::descriptor {

std::optional<std::string> depthwise_refusal(const TensorSpec& x, int64_t c_per_group, Inner inner) {
  if (c_per_group != 1) return "it is not depthwise: groups is not the number of channels of x";
  const Inner given = inner_of(x);
  if (given != inner && given != Inner::either) {
    return inner == Inner::pixels ? "channels of x stand closer together than its pixels"
                                  : "pixels of x stand closer together than its channels";
  }
  return std::nullopt;
}

std::optional<std::string> depthwise_refusal(const ConvolutionAddresses& conv, Inner inner) {
  if (auto why = depthwise_refusal(conv.x, conv.c_per_group(), inner)) return why;
  if (conv.rows.window * conv.columns.window > most_taps) return "a plane of a filter has more than 121 taps";
  return std::nullopt;
}

std::optional<std::string> depthwise_gradient_refusal(const FilterGradient& gradient, int64_t c_of_a_filter,
                                                      Inner inner) {
  if (gradient.blend.alpha == Scale::zero) return "alpha is zero: there is nothing to multiply";
  if (auto why = depthwise_refusal(gradient.x, c_of_a_filter, inner)) return why;
  if (gradient.taps() > most_taps) return "a filter has more than 121 taps";
  return std::nullopt;
}

std::optional<std::string> refusal_of_depthwise(const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const bool one_by_one = conv.groups > 1 && conv.c_per_group() == 1 && conv.k_per_group() == 1;
  if (!one_by_one || conv.taps() > most_taps) return std::nullopt;
  return "it is depthwise: a tile would have one column in 32, and there are kernels for that";
}

int64_t input_positions(const WindowAxis& axis, int64_t tile) {
  return (tile - 1) * axis.stride + axis.reach();
}

int64_t met_positions(const WindowAxis& axis, int64_t tile) {
  return std::min(input_positions(axis, tile), tile * axis.window);
}

int depthwise_x_run(const TensorSpec& x, const WindowAxis& columns, int q) {
  return widest_vector(x, {dimension::column}, q * columns.stride);
}

int64_t depthwise_shift(const WindowAxis& columns, int run) {
  return (run - columns.pad_begin % run) % run;
}

int64_t depthwise_runs(const WindowAxis& columns, int q, int run) {
  return ceil_div(depthwise_shift(columns, run) + input_positions(columns, q), run);
}

bool tile_suits_the_image(const SpatialAxes& axes, int p, int q) {
  return (p == 1 || p < 2 * axes.rows.outputs) && (q == 1 || q < 2 * axes.columns.outputs);
}

int64_t tiles_per_channel(const SpatialAxes& axes, int p, int q) {
  return axes.planes.outputs * ceil_div(axes.rows.outputs, p) * ceil_div(axes.columns.outputs, q);
}

}  // namespace kiln::descriptor
