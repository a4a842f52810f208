// Cost of a tiling's blocks.
#include <algorithm>
#include <cmath>

#include "contraction/simt_tiling.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

// Columns of sums that a thread has. Sums of quads that lie behind the last column of c are never stored, and the
// compiler leaves out all that leads to them.
int live_columns(const SimtTiling& tiling, const Contraction& contraction) {
  const int64_t quads = tiling.thread_n / 4, apart = tiling.block_n / quads;
  return static_cast<int>(4 * std::min(quads, ceil_div(contraction.columns(), apart)));
}

// simt_registers() bounds them; the compiler takes fewer where there are fewer sums, or no next chunk to load.
int registers_taken(const SimtTiling& tiling, const Contraction& contraction) {
  SimtTiling live = tiling;
  live.thread_n = live_columns(tiling, contraction);
  const int sums_and_rows = sum_registers(live);
  if (contraction.chunks(tiling.block_k) == 1) return sums_and_rows;
  return simt_registers(tiling, contraction) - sum_registers(tiling) + sums_and_rows;
}

}  // namespace

BlockWork simt_block_work(const SimtTiling& tiling, const Contraction& contraction, const Arch& arch, double chunks) {
  const SimtAccess access = simt_access(tiling, contraction);
  const double warps = tiling.warps(), k = tiling.block_k;
  const int columns = live_columns(tiling, contraction);
  const double sums = tiling.thread_m * columns, quads = (tiling.thread_m + columns) / 4.0;
  const double a_elements = tiling.block_m * k, b_elements = tiling.block_n * k;  // of a chunk
  const bool alike = tiling.block_k % contraction.period() == 0;                  // chunks of a gathered a
  // Instructions of an access and its address, and of a store to shared memory.
  const double a_fetch = contraction.a_is_gathered() ? (alike ? 4 : 16) : 8.0 / access.a_run;
  const double b_fetch = 4.0 / access.b_run;
  const double stash = size_of(contraction.a_type()) == 4 ? 1 : 2;

  BlockWork work;
  work.threads = tiling.threads();
  work.registers = std::min(registers_taken(tiling, contraction),
                            registers_with(min_blocks(tiling, contraction, arch) * tiling.warps(), arch));
  work.warps_at_half_rate = 4;  // sums are independent of each other, but wait for shared memory
  work.shared_bytes = tiling.most_shared_bytes();
  work.fma = chunks * warps * k / tiling.slices * sums;
  const double moves =
      (a_elements * (a_fetch + stash + contraction.prologue_instructions) + b_elements * (b_fetch + stash)) / 32;
  work.instructions = work.fma +
                      chunks * (warps * (k / tiling.slices * quads + (tiling.stages == 1 ? 64 : 60)) + moves) +
                      warps * (250 + 6 * sums);
  // A 16-byte access takes four passes however few addresses its lanes share: what they get is 512 bytes.
  // Values that one load brings go to rows of a tile each, with conflicts of banks.
  const double multiply_passes = warps * k / tiling.slices * quads * 4;
  work.shared_wavefronts =
      chunks *
      (multiply_passes + (a_elements * (access.a_run == 1 ? 1 : 3) + b_elements * (access.b_run == 1 ? 1.5 : 3)) / 32);
  const double a_bytes = a_elements * size_of(contraction.a_type());
  const double b_bytes = b_elements * size_of(contraction.b_type()) * contraction.b_spread();
  const double a_spread = static_cast<double>(std::clamp<int64_t>(contraction.a_pitch(), 1, 8));
  work.global_sectors = chunks * (a_bytes * a_spread + b_bytes * 1.4) / 32;
  // Elements that stand in a again are still in L1.
  const double reuse = std::min(4.0, std::sqrt(static_cast<double>(contraction.a_repeats())));
  work.l2_bytes = chunks * (a_bytes * a_spread / reuse + b_bytes);
  // The chain of one warp: while it multiplies a chunk, the next is on its way; then it stores that and waits.
  const double multiply = k / tiling.slices * (sums * 1.25 + quads * 6);
  const double loads = (a_elements / access.a_run + b_elements / access.b_run) / work.threads;  // a thread
  const double load = 400 + 30 * loads;
  work.stall_clocks = 1000 + 200 * chunks;  // prologue; two barriers, and the pipelines fill again
  const double store = 4 * (a_elements + b_elements) / work.threads + (tiling.stages == 1 ? 80 : 40);
  const double gather = (tiling.slices - 1) * (sums * 8 + 100);
  int unroll = 16;  // rows_to_unroll() of lib/gemm_tile.cuh
  while (tiling.block_k / tiling.slices % unroll != 0) --unroll;
  // The products of a chunk stand there twice: the last chunk has nothing to load.
  work.code_instructions = 150 + 2 * unroll * (sums + quads) + (tiling.slices > 1 ? 12 : 4) * sums +
                           (12 * a_elements + 6 * b_elements) / work.threads;
  work.latency_clocks = 1800 + load + chunks * (std::max(multiply, load) + store) + gather;
  work.contention = 1.08;  // by an A100's clock; times of an H100 and an H200 are longer by more
  return work;
}

double reread_bytes(const Contraction& contraction, const DeviceFigures& device) {
  const double bytes = contraction.b_bytes();
  return bytes * 2 < static_cast<double>(device.l2_bytes) ? 0.0 : bytes * (contraction.b_spread() - 1);
}

}  // namespace kiln::descriptor
