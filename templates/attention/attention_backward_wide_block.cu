// Gradients of attention for heads of many elements on the lanes of a block: any dtypes and strides. Parameters:
// wide_backward.h.
#include "lib/attention_chunks_block.cuh"
#include "lib/attention_wide_gradient.cuh"
