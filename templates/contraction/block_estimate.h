// Predicted time of kernels that are bound by arithmetic: thread blocks in rounds on the SMs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "contraction/contractions.h"
#include "descriptor/occupancy.h"

namespace kiln::descriptor {

/// Work of one thread block. Instructions and wavefronts are per warp.
struct BlockWork {
  double threads = 0;
  double registers = 32;    ///< per thread
  double shared_bytes = 0;  ///< shared memory of the block
  MathClass math = MathClass::f32_lanes;
  double fma = 0;                ///< fused multiply-adds of that class, 32 at a time
  double instructions = 0;       ///< all, fma included
  double shared_wavefronts = 0;  ///< shared-memory passes: 128 bytes each
  double global_sectors = 0;     ///< 32-byte sectors asked of L1, 4 for a line of which an access takes less
  double l2_bytes = 0;           ///< bytes that L1 does not hold
  double latency_clocks = 0;     ///< what the block takes when nothing else runs: its chain of loads and barriers
  double stall_clocks = 0;       ///< in which all of its warps wait: for barriers, and for loads behind them
  double chain_clocks = 0;       ///< of loads that wait for one another, which the first warps, in step, do not hide
  double code_instructions = 0;  ///< that a thread meets, each counted once: the first warps wait for them
  double contention = 1;         ///< times that all of it takes, because its parts wait for one another
  /// Warps with which an SM reaches half of its issue rate: fewer with more independent work. Lanes of a slower class
  /// of mathematics need as many fewer.
  double warps_at_half_rate = 2;
};

/// Everything a variant does.
struct GridWork {
  BlockWork block;
  double blocks = 0;
  double dram_bytes = 0;         ///< device memory traffic of the main kernel
  double extra_dram_bytes = 0;   ///< of further kernels, which run after it
  double heaviest = 1;           ///< instructions of the block that has the most, of the mean one's
  double code_instructions = 0;  ///< of all kinds of blocks, where there are several
  double longest_clocks = 0;     ///< the most that a block takes when nothing else runs
  int launches = 1;
};

/// Cost of one access of a warp to global memory.
struct Access {
  double l1 = 0;       ///< in units of BlockWork::global_sectors, 4 a clock: each of L1's 32 banks gives a word a clock
  double sectors = 0;  ///< different ones
};

/// Access of lanes that begin at these addresses and load `bytes` each.
Access access_of(std::span<const int64_t> lanes, int64_t bytes);

/// Access of `lanes` lanes that are `pitch` bytes apart.
Access access_at_pitch(int64_t pitch, int64_t bytes, int64_t lanes = 32);

/// So many lanes, `stride` bytes apart; or so many groups of those along the axes before.
struct LaneAxis {
  int64_t extent, stride;
};
/// Access of `lanes` lanes that are numbered along these axes, the first one first; the last one goes on.
Access access_along(std::initializer_list<LaneAxis> axes, int64_t bytes, int64_t lanes = 32);

/// Multiply-adds of that class that an SM reaches in a clock: measured (Calibration), else what is usual.
double reached_products(const Arch& arch, MathClass math, const Calibration& reached);

/// How long the first warps of a launch wait for so many instructions that no cache of their SM has.
double code_clocks(double instructions);

/// The work of a launch that does several side by side.
GridWork side_by_side(const std::vector<GridWork>& works);

/// Each SM works off its share of the blocks in rounds of as many as fit; a round lasts as long as its scarcest
/// resource (issue slots, f32 lanes, shared memory, L1, L2) with what the other blocks do not hide of a block's stalls,
/// or as one block's latency. Before that, the code comes from L2, while the first loads wait for one another. Device
/// memory bounds the whole; what further kernels move comes on top.
Estimate grid_estimate(const GridWork& work, const Arch& arch, const DeviceFigures& device);

/// The work of one launch for all parts, of which `work_of(contraction)` is that of each alone: they read the same a.
template <class WorkOf>
GridWork work_of_parts(const Contractions& parts, WorkOf work_of) {
  std::vector<GridWork> works;
  for (const Contraction& part : parts.list) {
    works.push_back(work_of(part));
    if (!part.multiplies()) works.back().blocks = 0;  // they store and end, beside those of the other parts
  }
  GridWork work = side_by_side(works);
  work.launches = static_cast<int>(launches_of(parts)) + packing_launches(parts.packed);
  work.extra_dram_bytes += packed_bytes(parts.packed);
  work.dram_bytes -= static_cast<double>(works.size() - 1) * parts.main().a_bytes();
  return work;
}

/// Completes the description of a kernel whose one launch, with blocks of `parameters.threads`, makes all parts. For
/// one of them alone `make_grid(parameters, contraction)` is the grid, `work_of(parameters, contraction)` the work, and
/// `add_constants(prelude, parameters, contraction)` adds what the kernel needs besides contraction_prelude(), in which
/// `fixed` is no extent.
template <class Parameters, class MakeGrid, class AddConstants, class WorkOf>
Algorithm of_one_launch(Describe<Parameters, Contractions>&& description, const std::string& kernel, MakeGrid make_grid,
                        AddConstants add_constants, WorkOf work_of, FixedAxes fixed = FixedAxes::nothing) {
  const auto grid = [make_grid](const Parameters& parameters, const Contractions& parts) {
    return grid_of(parts, [&](const Contraction& part) { return make_grid(parameters, part); });
  };
  const auto fits = [grid](const Parameters& parameters, const Contractions& parts, const Target&) {
    return !parts.refusal && grid_fits(grid(parameters, parts), parts);
  };
  const auto program = [=](const Parameters& parameters, const Contractions& parts, const Target&,
                           const Emitter& emit) {
    Launch launch = contraction_launch(kernel, parameters.threads);
    launch.grid = grid(parameters, parts);
    return program_of(parts, emit, {launch}, [&](const Contraction& part) {
      Prelude prelude = contraction_prelude(part, fixed);
      add_constants(prelude, parameters, part);
      return prelude;
    });
  };
  const auto predict = [work_of](const Parameters& parameters, const Contractions& parts, const Target& target,
                                 const DeviceFigures& device) {
    const auto of_part = [&](const Contraction& part) { return work_of(parameters, part); };
    return grid_estimate(work_of_parts(parts, of_part), target.arch, device);
  };
  return std::move(description).rule("the grid fits", fits).program(program).estimate(predict);
}

/// Bytes that must cross the memory bus once: all operands that are read, and c.
double compulsory_bytes(const Contraction& contraction);

/// Cost of a byte that one launch leaves in the workspace for the next, in bytes of device memory: less where all
/// `bytes` of it stay in L2.
double workspace_share(double bytes, const DeviceFigures& device);

}  // namespace kiln::descriptor
