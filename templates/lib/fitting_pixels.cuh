// The left operand of an implicit matrix product, by the loader that suits the filter.
#include "lib/im2col_pixels.cuh"
#include "lib/pointwise_pixels.cuh"

using FittingPixels = typename Select<POINTWISE, PointwisePixels, Im2colPixels>::type;
