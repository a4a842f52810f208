// Cost of a tiling's blocks on tensor cores.
#include <algorithm>
#include <cmath>

#include "contraction/tensor_tiling.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {

// On 9.0, wgmma alone reaches the whole (cycles of m16n8k16 on an H100: 6.26 for 4).
double mma_share(const Arch& arch) {
  return arch.major == 9 ? 0.64 : 1;
}

BlockWork tensor_block_work(const TensorTiling& tiling, const Contraction& contraction, Bring bring, const Arch& arch,
                            double chunks) {
  const TensorAccess access = tensor_access(contraction, bring);
  const double warps = tiling.warps(), bytes = tensor_element_bytes(contraction);
  const double step_depth = 32 / bytes, steps = tiling.block_k / step_depth;
  const double a_elements = tiling.block_m * tiling.block_k, b_elements = tiling.block_n * tiling.block_k;
  const double products = tiling.warp_m / 16.0 * tiling.warp_n / 8.0 * steps;  // instructions of a warp and chunk
  // Loads of a warp and chunk: four where ldmatrix would take one, if it cannot turn the elements.
  const auto fragment_loads = [&](bool down) { return down || bytes == 2 ? 1 : 4; };
  const double fragments = (tiling.warp_m * fragment_loads(contraction.a_along() == Along::depth) +
                            tiling.warp_n * fragment_loads(contraction.b_along() == Along::depth)) /
                           16.0 * steps;
  const double fragment_bytes = (tiling.warp_m + tiling.warp_n) * 32 * steps;  // of a warp and chunk
  const double runs = a_elements / access.a_run + b_elements / access.b_run;   // of a block and chunk
  const bool copied = bring == Bring::copied;
  const MathClass math = bytes == 4 ? MathClass::tensor_tf32 : MathClass::tensor_f16;
  // Instructions of a run: a copy, its address and whether it exists; or a load, what becomes of it, and a store.
  const double a_fetch = copied ? 3 : contraction.a_is_gathered() ? 12 : 8, b_fetch = copied ? 2 : 6;

  BlockWork work;
  work.threads = tiling.threads();
  work.registers = std::min(arch.registers_per_thread, tensor_registers(tiling, contraction, bring, arch));
  work.shared_bytes = tiling.shared_bytes(tensor_element_bytes(contraction));
  work.math = math;
  work.warps_at_half_rate = 1;
  const double product = 16 * 8 * step_depth;  // multiply-adds of an instruction
  work.fma = chunks * warps * products * product / 32 / mma_share(arch);
  const double outputs = static_cast<double>(tiling.block_m) * tiling.block_n;
  const double finish = outputs / 32 * (2.0 + 12.0 / access.c_run);
  work.instructions = chunks * (warps * (products + fragments + 24) +
                                (a_elements / access.a_run * a_fetch + b_elements / access.b_run * b_fetch) / 32) +
                      warps * 400 + finish;
  const double tile_bytes = (a_elements + b_elements) * bytes;
  const double store_share = copied ? 1 : 1.0 + 1.0 / std::min(access.a_run, access.b_run);
  work.shared_wavefronts = chunks * (warps * fragment_bytes + store_share * tile_bytes) / 128 + outputs * 4 * 3 / 128;
  work.global_sectors = chunks * tile_bytes / 32 * (access.a_run == 1 || access.b_run == 1 ? 2 : 1);
  // Neighbouring taps find much of a in L1.
  const double reuse = std::min(2.0, std::sqrt(static_cast<double>(contraction.a_repeats())));
  work.l2_bytes = chunks * (a_elements / reuse + b_elements) * bytes + outputs * 2;
  // A warp alone: its products follow one another, and it waits for loads that no stage hides.
  const double per_scheduler = std::ceil(warps / 4);
  const double multiply =
      per_scheduler * products * product * 4 / (arch.products_per_clock(math) * mma_share(arch)) + 40;
  constexpr double load = 700;
  const double ahead = copied ? tiling.stages - 1 : 1;
  const double chunk_clocks = std::max(multiply, load / ahead) + (copied ? 30 : 120 + 8 * runs / work.threads);
  work.stall_clocks = 1000 + chunks * (copied ? 40 : 150);
  work.latency_clocks = 1800 + load + chunks * chunk_clocks + outputs / work.threads * 8;
  work.code_instructions = 600 + products + 4 * fragments + 8 * runs / work.threads + 2 * outputs / work.threads;
  return work;
}

}  // namespace kiln::descriptor
