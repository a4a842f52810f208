// What the blocks of a tiling cost.
#include <algorithm>
#include <cmath>

#include "contraction/simt_tiling.h"

namespace kiln::descriptor {
namespace {

// Of what w's sectors hold, how many times as much is read as is used: where regions are divided by inputs, taps that
// stand side by side are read for different regions.
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

}  // namespace

BlockWork simt_block_work(const SimtTiling& tiling, const Contraction& contraction, const Arch& arch, double chunks) {
  const SimtAccess access = simt_access(tiling, contraction);
  const double warps = tiling.warps(), k = tiling.block_k;
  const double sums = tiling.thread_m * tiling.thread_n, quads = (tiling.thread_m + tiling.thread_n) / 4.0;
  const double x_elements = tiling.block_m * k, w_elements = tiling.block_n * k;  // of a chunk
  const bool same_taps = tiling.block_k % contraction.taps() == 0;
  // Instructions of an access and its address, and of a store to shared memory.
  const double x_fetch = gathers(contraction) ? (same_taps ? 4 : 16) : 8.0 / access.x_run;
  const double w_fetch = 4.0 / access.w_run;
  const double stash = size_of(contraction.x.dtype) == 4 ? 1 : 2;

  BlockWork work;
  work.threads = tiling.threads();
  work.registers = registers_with(min_blocks(tiling, contraction, arch) * tiling.warps(), arch);
  work.warps_at_half_rate = 1;  // sums are independent of each other
  work.shared_bytes = tiling.shared_bytes();
  work.fma = chunks * warps * k / tiling.slices * sums;
  const double moves =
      (x_elements * (x_fetch + stash + contraction.prologue_instructions) + w_elements * (w_fetch + stash)) / 32;
  work.instructions = work.fma +
                      chunks * (warps * (k / tiling.slices * quads + (tiling.stages == 1 ? 24 : 20)) + moves) +
                      warps * (150 + 6 * sums);
  // A 16-byte access takes two passes however few addresses its lanes share.
  work.shared_wavefronts = chunks * (warps * k / tiling.slices * quads * 2 + (x_elements + w_elements * 1.5) / 32);
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
  const double load = 600 + 70 * loads;
  const double store = 4 * (x_elements + w_elements) / work.threads + (tiling.stages == 1 ? 80 : 40);
  const double gather = (tiling.slices - 1) * (sums * 8 + 100);
  work.latency_clocks = 1800 + load + chunks * (std::max(multiply, load) + store) + gather;
  return work;
}

double reread_bytes(const Contraction& contraction, const DeviceFigures& device) {
  const double bytes =
      static_cast<double>(contraction.w.elements() * contraction.region_axes.count()) * size_of(contraction.w.dtype);
  return bytes * 2 < static_cast<double>(device.l2_bytes) ? 0.0 : bytes * (w_spread(contraction) - 1);
}

}  // namespace kiln::descriptor
