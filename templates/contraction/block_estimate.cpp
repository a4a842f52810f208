#include "contraction/block_estimate.h"

#include <algorithm>
#include <cmath>

namespace kiln::descriptor {
namespace {

constexpr double issue_per_clock = 4;    // warp instructions per SM
constexpr double sectors_per_clock = 4;  // of L1, per SM

// Clocks that an SM takes for `count` blocks side by side.
double round_clocks(const BlockWork& block, const Arch& arch, const Calibration& reached, double count) {
  const double warps = count * std::ceil(block.threads / 32);
  const double rate = std::min(issue_per_clock, warps) * warps / (warps + block.warps_at_half_rate);
  const double fma_rate =
      rate * arch.products_per_clock(block.math) / (32 * issue_per_clock) * reached.efficiency(block.math);
  // Shared memory and L1 are one memory with one path to the lanes.
  const double on_chip =
      std::max(block.shared_wavefronts / reached.shared_efficiency + block.global_sectors / sectors_per_clock,
               block.l2_bytes / reached.l2_bytes_per_clock);
  return std::max(
      {count * block.instructions / rate, count * block.fma / fma_rate, count * on_chip, block.latency_clocks});
}

}  // namespace

GridWork side_by_side(const std::vector<GridWork>& works) {
  GridWork sum = works.front();
  if (works.size() == 1) return sum;
  sum.blocks = sum.dram_bytes = sum.extra_dram_bytes = 0;
  for (const GridWork& work : works) {
    sum.blocks += work.blocks;
    sum.dram_bytes += work.dram_bytes;
    sum.extra_dram_bytes += work.extra_dram_bytes;
    sum.block.registers = std::max(sum.block.registers, work.block.registers);
    sum.block.shared_bytes = std::max(sum.block.shared_bytes, work.block.shared_bytes);
  }
  // Blocks of all kinds run together: each counts as one of the mean.
  for (double BlockWork::*amount :
       {&BlockWork::fma, &BlockWork::instructions, &BlockWork::shared_wavefronts, &BlockWork::global_sectors,
        &BlockWork::l2_bytes, &BlockWork::warps_at_half_rate, &BlockWork::latency_clocks}) {
    sum.block.*amount = 0;
    for (const GridWork& work : works)
      sum.block.*amount += work.block.*amount * work.blocks / std::max(1.0, sum.blocks);
  }
  return sum;
}

Estimate grid_estimate(const GridWork& work, const Arch& arch, const DeviceFigures& device) {
  const BlockWork& block = work.block;
  const double sms = std::max(device.sms, 1);
  const double share = std::ceil(work.blocks / sms);  // blocks of the busiest SM
  const double resident =
      std::min(resident_blocks({block.threads, block.registers, block.shared_bytes}, arch), std::max(share, 1.0));
  const double rounds = std::floor(share / resident);
  const double rest = share - rounds * resident;
  const Calibration& reached = device.calibration;
  double clocks = rounds * round_clocks(block, arch, reached, resident);
  if (rest > 0) clocks += round_clocks(block, arch, reached, rest);

  // Few SMs cannot draw the whole bandwidth.
  const double peak = device.dram_bytes_per_second * reached.copy_efficiency;
  const double busy_sms = std::clamp(work.blocks, 1.0, sms);
  const double bandwidth = std::min(peak, busy_sms * reached.l2_bytes_per_clock * device.clock_hz);

  Estimate estimate;
  estimate.math = share * block.fma * 32 / arch.products_per_clock(block.math) / device.clock_hz;
  estimate.on_chip =
      share * std::max(block.shared_wavefronts, block.l2_bytes / reached.l2_bytes_per_clock) / device.clock_hz;
  estimate.memory = work.dram_bytes / bandwidth + work.extra_dram_bytes / peak;
  estimate.overhead = work.launches * reached.launch_seconds;
  const double busy = clocks / device.clock_hz;
  // Arithmetic and memory overlap, though never perfectly.
  estimate.seconds = std::max(busy, estimate.memory) + 0.15 * std::min(busy, estimate.memory) + estimate.overhead;
  return estimate;
}

double compulsory_bytes(const Contraction& contraction) {
  const auto bytes = [](const TensorSpec& spec) { return static_cast<double>(spec.elements()) * size_of(spec.dtype); };
  // The x of a filter's gradient is that of one group.
  const double groups =
      static_cast<double>(contraction.groups * contraction.c_per_group()) / static_cast<double>(contraction.c());
  const ProductBatch batch = contraction.batch.value_or(ProductBatch{});
  // Matrices of an operand that differ.
  const auto matrices = [&](const std::array<int64_t, 3>& strides) {
    double count = 1;
    for (size_t i = 0; i < strides.size(); ++i) count *= strides[i] == 0 ? 1.0 : static_cast<double>(batch.extents[i]);
    return count;
  };
  double of_y = bytes(contraction.y) * matrices(batch.y) * (contraction.blend.beta == Scale::zero ? 1 : 2);
  if (contraction.residual) of_y += bytes(*contraction.residual) * matrices(batch.residual);
  // What one region has; where inputs are divided, y is whole.
  const auto regions =
      static_cast<double>(contraction.divided == Divided::nothing ? 1 : contraction.region_axes.count());
  double total = groups * bytes(contraction.x) * matrices(batch.x) +
                 bytes(contraction.w) * matrices(batch.w) * regions +
                 of_y * (contraction.divided == Divided::inputs ? 1 : regions);
  if (contraction.bias) total += bytes(*contraction.bias);
  return total;
}

double workspace_share(double bytes, const DeviceFigures& device) {
  if (bytes * 2 >= static_cast<double>(device.l2_bytes)) return 1;
  const double l2 = std::max(device.sms, 1) * device.calibration.l2_bytes_per_clock * device.clock_hz;
  return std::min(1.0, device.dram_bytes_per_second * device.calibration.copy_efficiency / l2);
}

double inside_share(const Contraction& contraction) {
  return mean_taps_inside(contraction) / static_cast<double>(contraction.taps());
}

}  // namespace kiln::descriptor
