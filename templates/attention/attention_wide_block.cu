// Attention for heads of many elements on the lanes of a block: any dtypes and strides. Parameters: wide_forward.h.
#include "lib/attention_chunks_block.cuh"
#include "lib/attention_wide.cuh"
