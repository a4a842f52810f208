// Parts of a convolution whose operands are copied: what a template includes, for each class if there are several.
#include "lib/conv_stream.cuh"
#include "lib/copied_operands.cuh"

using SplitPixels = CopiedPixels;
using SplitFilters = CopiedFilters;
