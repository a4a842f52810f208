// Parts shared by the depthwise descriptors.
#pragma once

#include <optional>
#include <string>

#include "contraction/contraction.h"
#include "conv/gradients.h"

namespace kiln::descriptor {

/// Taps that the kernels unroll at most.
constexpr int64_t most_taps = 121;

/// Why a depthwise kernel that runs along `inner` of x cannot serve groups of so many channels of `x`; nothing if it
/// can.
std::optional<std::string> depthwise_refusal(const TensorSpec& x, int64_t c_per_group, Inner inner);
/// The same for the kernels that are contractions, which unroll the taps of a plane.
std::optional<std::string> depthwise_refusal(const ConvolutionAddresses& conv, Inner inner);

/// Why the gradient by the filter that runs along `inner` of x, with `c_of_a_filter` channels of x for each filter,
/// cannot serve `gradient`; nothing if it can.
std::optional<std::string> depthwise_gradient_refusal(const FilterGradient& gradient, int64_t c_of_a_filter,
                                                      Inner inner);
/// Most sums that a thread of these kernels keeps in registers.
constexpr int64_t most_sums = 128;

/// Why matrix products should not serve `contraction`, a convolution or a gradient by the input: with one output
/// channel a group they would waste all but one of a tile's 32 columns or more. Nothing where the depthwise kernels
/// cannot take its place.
std::optional<std::string> refusal_of_depthwise(const Contraction& contraction);

/// Positions along an axis of x that `tile` neighbouring outputs need.
int64_t input_positions(const WindowAxis& axis, int64_t tile);

/// Positions among those that some tap meets.
int64_t met_positions(const WindowAxis& axis, int64_t tile);

/// Elements of one access of x along a row, where tiles have q outputs: rows, and the starts of tiles in them, are
/// multiples of it.
int depthwise_x_run(const TensorSpec& x, const WindowAxis& columns, int q);
/// SHIFT of lib/depthwise_segments.cuh: elements from an access of `run` that is aligned to the one under tap 0.
int64_t depthwise_shift(const WindowAxis& columns, int run);
/// Accesses of `run` elements of one row of x under a tile: RUNS of lib/depthwise_segments.cuh.
int64_t depthwise_runs(const WindowAxis& columns, int q, int run);

/// Rule "the tile suits the image": a tile of p x q outputs is not twice as large as the image or more.
bool tile_suits_the_image(const SpatialAxes& axes, int p, int q);

/// Tiles of p x q outputs in one channel of one image.
int64_t tiles_per_channel(const SpatialAxes& axes, int p, int q);

}  // namespace kiln::descriptor
