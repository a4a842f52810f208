// The constants of pooling kernels, shared by their descriptors.
#pragma once

#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// Whether offsets or window coordinates of `pool` need 64 bits.
bool needs_wide_index(const PoolForward& pool);

/// TX, TY, Index, N, DYNAMIC_N, C, H, W, P, Q, the window (R, S, PAD_*, STRIDE_*, DILATION_*), MODE, ALPHA and BETA.
Prelude pool_prelude(const PoolForward& pool);

/// Whether the window is all of x: one output a plane, nothing padded.
bool is_global(const PoolForward& pool);

/// Whether coordinates in x and its padding fit an int with room to spare, as kernels with tiles need.
bool window_fits_int(const PoolForward& pool);

/// Bytes of x and y that have to move between device memory and the SMs.
double compulsory_bytes(const PoolForward& pool);

/// Bytes that a load of `bytes` of x costs a lane on average, where neighbouring threads make neighbouring tiles of
/// `tile_p` x `tile_q` outputs of a packed NCHW y: next to each other in a row, or a row or a plane further on.
double lane_bytes_of_x(const PoolForward& pool, double bytes, int64_t tile_p, int64_t tile_q);

/// The part of the window that lies inside of x for the average output: what a kernel has to read for it.
double mean_window_elements(const PoolForward& pool);

}  // namespace kiln::descriptor
