// The constants of pooling kernels, shared by their descriptors.
#pragma once

#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// Whether offsets or window coordinates of `pool` need 64 bits.
bool needs_wide_index(const PoolForward& pool);

/// TX, TY, Index, N, DYNAMIC_N, C, H, W, P, Q, the window (R, S, PAD_*, STRIDE_*, DILATION_*), MODE, ALPHA and BETA.
Prelude pool_prelude(const PoolForward& pool);

/// The part of the window that lies inside of x for the average output: what a kernel has to read for it.
double mean_window_elements(const PoolForward& pool);

}  // namespace kiln::descriptor
