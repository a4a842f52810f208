#include "conv/depthwise/depthwise.h"

#include <algorithm>

#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

constexpr int64_t most_taps = 121;  // which the kernels unroll

}  // namespace

std::optional<std::string> depthwise_refusal(const ConvolutionAddresses& conv, Inner inner) {
  if (conv.c_per_group() != 1) return "it is not depthwise: groups is not the number of channels of x";
  const Inner given = inner_of(conv.x);
  if (given != inner && given != Inner::either) {
    return inner == Inner::pixels ? "channels of x stand closer together than its pixels"
                                  : "pixels of x stand closer together than its channels";
  }
  if (conv.rows.window * conv.columns.window > most_taps) return "a plane of a filter has more than 121 taps";
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

bool tile_suits_the_image(const ConvolutionAddresses& conv, int p, int q) {
  return (p == 1 || p < 2 * conv.rows.outputs) && (q == 1 || q < 2 * conv.columns.outputs);
}

int64_t tiles_per_channel(const ConvolutionAddresses& conv, int p, int q) {
  return conv.planes.outputs * ceil_div(conv.rows.outputs, p) * ceil_div(conv.columns.outputs, q);
}

}  // namespace kiln::descriptor
