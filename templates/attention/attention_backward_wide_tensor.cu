// Gradients of attention for heads of many elements on tensor cores: q and k are of one type, f16 or bf16, and so are v
// and dy; elements stand side by side. Parameters: wide_backward.h.
#include "lib/attention_chunks_tensor.cuh"
#include "lib/attention_wide_gradient.cuh"
