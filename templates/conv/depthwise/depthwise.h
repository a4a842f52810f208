// Parts shared by the two depthwise descriptors.
#pragma once

#include <optional>
#include <string>

#include "contraction/contraction.h"

namespace kiln::descriptor {

/// Why the depthwise kernel that runs along `inner` of x cannot serve `conv`; nothing if it can.
std::optional<std::string> depthwise_refusal(const ConvolutionAddresses& conv, Inner inner);

/// Why matrix products should not serve `contraction`, a convolution or a gradient by the input: with one output
/// channel a group they would waste all but one of a tile's 32 columns or more. Nothing where the depthwise kernels
/// cannot take its place.
std::optional<std::string> refusal_of_depthwise(const Contraction& contraction);

/// Positions along an axis of x that `tile` neighbouring outputs need.
int64_t input_positions(const WindowAxis& axis, int64_t tile);

/// Positions among those that some tap meets.
int64_t met_positions(const WindowAxis& axis, int64_t tile);

/// Rule "the tile suits the image": a tile of p x q outputs is not twice as large as the image or more.
bool tile_suits_the_image(const ConvolutionAddresses& conv, int p, int q);

/// Tiles of p x q outputs in one channel of one image.
int64_t tiles_per_channel(const ConvolutionAddresses& conv, int p, int q);

}  // namespace kiln::descriptor
