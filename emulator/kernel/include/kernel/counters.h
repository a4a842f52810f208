// Counters of a launch.
#pragma once

#include <cstdint>

namespace kiln::emulator {

/// What one launch executed. Instruction counts are per warp ("issued"), as hardware profilers count them.
struct Counters {
  // Instructions issued by class; `issued` is their sum.
  uint64_t issued = 0;
  uint64_t fma_f32 = 0;  ///< fma/mul/add/sub on f32 (one warp instruction each)
  uint64_t fma_f16 = 0;  ///< f16, f16x2, bf16, bf16x2 arithmetic
  uint64_t fma_f64 = 0;
  uint64_t integer = 0;  ///< integer and logic arithmetic, compares, selects, moves
  uint64_t special = 0;  ///< ex2, lg2, rcp, rsqrt, sqrt, sin, cos, divisions
  uint64_t conversion = 0;
  uint64_t control = 0;        ///< branches, calls, barriers, predicate-only work
  uint64_t warp_exchange = 0;  ///< shfl, vote, match, redux
  uint64_t global_load = 0, global_store = 0, global_atomic = 0;
  uint64_t shared_load = 0, shared_store = 0, shared_atomic = 0;
  uint64_t local_access = 0, constant_access = 0;

  // Memory behaviour. Exact when every block was counted, else scaled up from the sampled blocks.
  uint64_t global_sectors = 0;        ///< 32-byte sectors touched, summed over warp accesses (coalescing)
  uint64_t unique_load_sectors = 0;   ///< distinct 32-byte sectors read by the launch (estimate when sampled)
  uint64_t unique_store_sectors = 0;  ///< distinct 32-byte sectors written by the launch (estimate when sampled)
  uint64_t block_sectors = 0;      ///< distinct 32-byte sectors of each block, summed over blocks: what L1 cannot keep
  uint64_t shared_wavefronts = 0;  ///< shared-memory passes: 1 per access without bank conflict
  uint64_t active_lanes = 0;       ///< lanes active, summed over issued instructions
  uint64_t barriers = 0;

  uint64_t blocks_total = 0;
  uint64_t blocks_counted = 0;  ///< blocks whose memory behaviour was recorded
  Counters& operator+=(const Counters& other);
};

}  // namespace kiln::emulator
