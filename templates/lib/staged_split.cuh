// Parts of a convolution on tensor cores whose operands come through registers: what a template includes, for each
// class if there are several.
#include "lib/conv_stream.cuh"
#include "lib/fitting_pixels.cuh"

using SplitPixels = FittingPixels;
using SplitFilters = Filters<BlockTile>;
