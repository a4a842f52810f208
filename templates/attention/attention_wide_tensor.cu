// Attention for heads of many elements on tensor cores: q and k are of one type, f16 or bf16, and v is; elements stand
// side by side. Parameters: wide_forward.h.
#include "lib/attention_chunks_tensor.cuh"
#include "lib/attention_wide.cuh"
