// Describes attention_forward for heads of many elements, on lanes and on tensor cores.
#pragma once

#include "attention/wide.h"

namespace kiln {

/// The algorithm of this name and template. Parameters: BLOCK_M rows by BLOCK_N columns of scores; SLICE elements of a
/// result for each block; PARTS of the keys.
Algorithm describe_attention_wide(descriptor::AttentionUnits units, const char* name, const char* path);

}  // namespace kiln
