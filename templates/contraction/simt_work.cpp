// Cost of a tiling's blocks.
#include <algorithm>
#include <cmath>

#include "contraction/simt_tiling.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

// Elements that are read of w's sectors for each one that is used: where regions are divided by inputs, taps that stand
// side by side are read for different regions.
double w_spread(const Contraction& contraction) {
  if (contraction.divided != Divided::inputs || contraction.filters_inner) return 1;
  int64_t pitch = 32 / size_of(contraction.w.dtype);  // elements from one that is read to the next, of a sector at most
  for (const size_t i : {size_t{0}, size_t{dimension::channel}}) {
    if (contraction.w.extents[i] > 1) pitch = std::min(pitch, contraction.w.strides[i]);
  }
  const auto apart = [](const WindowAxis& axis, const RegionAxis& regions) {  // share of taps that are in other regions
    const double met =
        1 + static_cast<double>((axis.reach() - 1) * regions.regions) / static_cast<double>(regions.outputs);
    return std::min(1.0, met / static_cast<double>(axis.window));
  };
  const double share = apart(contraction.planes, contraction.region_axes.planes) *
                       apart(contraction.rows, contraction.region_axes.rows) *
                       apart(contraction.columns, contraction.region_axes.columns);
  return std::max(1.0, static_cast<double>(pitch) * share);
}

// Columns of sums that a thread has. Sums of quads that lie behind the last filter are never stored, and the compiler
// leaves out all that leads to them.
int live_columns(const SimtTiling& tiling, const Contraction& contraction) {
  const int64_t quads = tiling.thread_n / 4, apart = tiling.block_n / quads;
  return static_cast<int>(4 * std::min(quads, ceil_div(contraction.k_per_group(), apart)));
}

// simt_registers() bounds them; the compiler takes fewer where there are fewer sums, or no next chunk to load.
int registers_taken(const SimtTiling& tiling, const Contraction& contraction) {
  SimtTiling live = tiling;
  live.thread_n = live_columns(tiling, contraction);
  const int sums_and_rows = sum_registers(live);
  if (simt_chunks(tiling, contraction) == 1) return sums_and_rows;
  return simt_registers(tiling, contraction) - sum_registers(tiling) + sums_and_rows;
}

}  // namespace

BlockWork simt_block_work(const SimtTiling& tiling, const Contraction& contraction, const Arch& arch, double chunks) {
  const SimtAccess access = simt_access(tiling, contraction);
  const double warps = tiling.warps(), k = tiling.block_k;
  const int columns = live_columns(tiling, contraction);
  const double sums = tiling.thread_m * columns, quads = (tiling.thread_m + columns) / 4.0;
  const double x_elements = tiling.block_m * k, w_elements = tiling.block_n * k;  // of a chunk
  const bool same_taps = tiling.block_k % contraction.taps() == 0;
  // Instructions of an access and its address, and of a store to shared memory.
  const double x_fetch = gathers(contraction) ? (same_taps ? 4 : 16) : 8.0 / access.x_run;
  const double w_fetch = 4.0 / access.w_run;
  const double stash = size_of(contraction.x.dtype) == 4 ? 1 : 2;

  BlockWork work;
  work.threads = tiling.threads();
  work.registers = std::min(registers_taken(tiling, contraction),
                            registers_with(min_blocks(tiling, contraction, arch) * tiling.warps(), arch));
  work.warps_at_half_rate = 4;  // sums are independent of each other, but wait for shared memory
  work.shared_bytes = tiling.shared_bytes();
  work.fma = chunks * warps * k / tiling.slices * sums;
  const double moves =
      (x_elements * (x_fetch + stash + contraction.prologue_instructions) + w_elements * (w_fetch + stash)) / 32;
  work.instructions = work.fma +
                      chunks * (warps * (k / tiling.slices * quads + (tiling.stages == 1 ? 64 : 60)) + moves) +
                      warps * (250 + 6 * sums);
  // A 16-byte access takes four passes however few addresses its lanes share: what they get is 512 bytes.
  // Values that one load brings go to rows of a tile each, with conflicts of banks.
  const double multiply_passes = warps * k / tiling.slices * quads * 4;
  work.shared_wavefronts =
      chunks *
      (multiply_passes + (x_elements * (access.x_run == 1 ? 1 : 3) + w_elements * (access.w_run == 1 ? 1.5 : 3)) / 32);
  const double x_bytes = x_elements * size_of(contraction.x.dtype);
  const double w_bytes = w_elements * size_of(contraction.w.dtype) * w_spread(contraction);
  const int64_t x_pitch = contraction.channels_inner ? contraction.x.strides[dimension::channel]
                          : contraction.images_inner
                              ? contraction.x.strides[dimension::batch]
                              : contraction.x.strides[dimension::column] * contraction.columns.stride;
  const double x_spread = static_cast<double>(std::clamp<int64_t>(x_pitch, 1, 8));
  work.global_sectors = chunks * (x_bytes * x_spread + w_bytes * 1.4) / 32;
  // Neighbouring taps read the same rows, which L1 still holds.
  const double reuse = std::min(4.0, std::sqrt(static_cast<double>(contraction.taps())));
  work.l2_bytes = chunks * (x_bytes * x_spread / reuse + w_bytes);
  // The chain of one warp: while it multiplies a chunk, the next is on its way; then it stores that and waits.
  const double multiply = k / tiling.slices * (sums * 1.25 + quads * 6);
  const double loads = (x_elements / access.x_run + w_elements / access.w_run) / work.threads;  // a thread
  const double load = 400 + 30 * loads;
  work.stall_clocks = 1000 + 200 * chunks;  // prologue; two barriers, and the pipelines fill again
  const double store = 4 * (x_elements + w_elements) / work.threads + (tiling.stages == 1 ? 80 : 40);
  const double gather = (tiling.slices - 1) * (sums * 8 + 100);
  int unroll = 16;  // rows_to_unroll() of lib/gemm_tile.cuh
  while (tiling.block_k / tiling.slices % unroll != 0) --unroll;
  // The products of a chunk stand there twice: the last chunk has nothing to load.
  work.code_instructions = 150 + 2 * unroll * (sums + quads) + (tiling.slices > 1 ? 12 : 4) * sums +
                           (12 * x_elements + 6 * w_elements) / work.threads;
  work.latency_clocks = 1800 + load + chunks * (std::max(multiply, load) + store) + gather;
  return work;
}

double reread_bytes(const Contraction& contraction, const DeviceFigures& device) {
  const double bytes =
      static_cast<double>(contraction.w.elements() * contraction.region_axes.count()) * size_of(contraction.w.dtype);
  return bytes * 2 < static_cast<double>(device.l2_bytes) ? 0.0 : bytes * (w_spread(contraction) - 1);
}

}  // namespace kiln::descriptor
