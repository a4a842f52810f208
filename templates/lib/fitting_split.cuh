// Parts of a convolution whose operands come through registers: what a template includes for each class.
#include "lib/conv_split.cuh"
#include "lib/fitting_pixels.cuh"
