#include "contraction/block_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace kiln::descriptor {
namespace {

constexpr double schedulers = 4;         // of an SM; each starts a warp's instruction a clock
constexpr double sectors_per_clock = 4;  // of L1, per SM
constexpr double line_instructions = 8;  // of 16 bytes, in a line of 128
constexpr double further_code = 200;     // instructions of a kernel that only moves or adds

// Clocks in which the schedulers get the lines of a block's code that their own caches of instructions do not hold.
// Warps of a block that share a scheduler meet a line together. Rates of lines: timing/cards.
double fetch_clocks(const BlockWork& block, const Arch& arch, double code_instructions) {
  constexpr double held_instructions = 2048;
  const double missed = std::max(0.0, 1 - held_instructions / std::max(1.0, code_instructions));
  const double warps_of_scheduler = std::max(1.0, block.threads / 32 / schedulers);
  const double clocks_of_line = arch.major == 9 ? 8 : 2;
  return missed * block.instructions / warps_of_scheduler / line_instructions * clocks_of_line;
}

// Clocks in which `count` blocks side by side keep some unit of an SM busy, and those that they do not hide.
double busy_clocks(const GridWork& work, const Arch& arch, const Calibration& reached, double count) {
  const BlockWork& block = work.block;
  const double warps = count * std::ceil(block.threads / 32);
  // Instructions of a class that a scheduler can start `peak` times a clock: the fewer warps it has, the oftener none
  // is ready. The one with the most is done last.
  const double of_scheduler = warps / schedulers, busiest = std::max(1.0, std::ceil(of_scheduler));
  const double fma_peak = reached_products(arch, block.math, reached) / (32 * schedulers);
  const auto rate = [&](double peak) {
    return schedulers * peak * of_scheduler / (busiest + block.warps_at_half_rate / schedulers * peak);
  };
  // Shared memory and L1 are one memory with one path to the lanes.
  const double on_chip =
      std::max(block.shared_wavefronts / reached.shared_efficiency + block.global_sectors / sectors_per_clock,
               block.l2_bytes / reached.l2_bytes_per_clock);
  const double busy =
      std::max({count * block.instructions / rate(1), count * block.fma / rate(fma_peak), count * on_chip,
                count * fetch_clocks(block, arch, std::max(block.code_instructions, work.code_instructions))});
  return busy + block.stall_clocks / std::max(1.0, count);
}

}  // namespace

double reached_products(const Arch& arch, MathClass math, const Calibration& reached) {
  double share = reached.*Calibration::share_of(math);
  // On 9.0, wgmma alone reaches the whole (cycles of m16n8k16 on an H100: 6.26 for 4).
  if (share == 0) share = math != MathClass::f32_lanes && arch.major == 9 ? 0.64 : 1;
  return share * arch.products_per_clock(math);
}

// The first warps wait for 9 lines of 128 bytes at a time: 8 are fetched with the one that is missed (so Huerta et al.,
// Analyzing Modern NVIDIA GPU cores, take it). Some of the way from L2 is hidden by what is there.
double code_clocks(double instructions) {
  constexpr double lines = 9, clocks = 150;
  return clocks * instructions / (lines * line_instructions);
}

Access access_of(std::span<const int64_t> lanes, int64_t bytes) {
  constexpr int64_t word = 4, banks = 32, sector = 32;
  std::set<int64_t> words, sectors;
  for (const int64_t lane : lanes) {
    for (int64_t at = lane; at < lane + bytes; at += word) {
      words.insert(at / word);
      sectors.insert(at / sector);
    }
  }
  std::array<int, banks> of_bank{};
  for (const int64_t each : words) ++of_bank[static_cast<uint64_t>(each) % banks];
  return {4.0 * *std::max_element(of_bank.begin(), of_bank.end()), static_cast<double>(sectors.size())};
}

Access access_at_pitch(int64_t pitch, int64_t bytes, int64_t lanes) {
  return access_along({{lanes, pitch}}, bytes, lanes);
}

Access access_along(std::initializer_list<LaneAxis> axes, int64_t bytes, int64_t lanes) {
  std::vector<int64_t> addresses;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    int64_t number = lane, address = 0;
    for (const LaneAxis& axis : axes) {
      const bool last = &axis == axes.end() - 1;
      address += (last ? number : number % axis.extent) * axis.stride;
      number /= axis.extent;
    }
    addresses.push_back(address);
  }
  return access_of(addresses, bytes);
}

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
        &BlockWork::l2_bytes, &BlockWork::warps_at_half_rate, &BlockWork::latency_clocks, &BlockWork::stall_clocks,
        &BlockWork::chain_clocks, &BlockWork::code_instructions}) {
    sum.block.*amount = 0;
    for (const GridWork& work : works)
      sum.block.*amount += work.block.*amount * work.blocks / std::max(1.0, sum.blocks);
  }
  for (const GridWork& work : works) {
    if (work.blocks == 0) continue;
    sum.heaviest = std::max(sum.heaviest, work.block.instructions / sum.block.instructions);
    sum.longest_clocks = std::max(sum.longest_clocks, work.block.latency_clocks);
    sum.code_instructions += work.block.code_instructions;
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
  const double busy = block.contention * busy_clocks(work, arch, reached, resident);
  const double latency = block.contention * block.latency_clocks, round = std::max(busy, latency);
  // The warps of a first round go in step: no unit is busy while they wait.
  const double in_step = std::max(0.0, busy + block.chain_clocks - round);
  double clocks = std::max(code_clocks(block.code_instructions), in_step) + rounds * round;
  // The last blocks begin whenever one before them ends.
  if (rest > 0) clocks += std::max(round * rest / resident, 0.5 * latency);
  // An SM that gets one of the heaviest blocks is done later, the more so the fewer it has.
  clocks =
      std::max(clocks * (1 + 0.6 * (work.heaviest - 1) / std::max(1.0, share)), block.contention * work.longest_clocks);

  // Few SMs cannot draw the whole bandwidth.
  const double peak = device.dram_bytes_per_second * reached.copy_efficiency;
  const double busy_sms = std::clamp(work.blocks, 1.0, sms);
  const double bandwidth = std::min(peak, busy_sms * reached.l2_bytes_per_clock * device.clock_hz);

  Estimate estimate;
  estimate.math = share * block.fma * 32 / reached_products(arch, block.math, reached) / device.clock_hz;
  estimate.on_chip =
      share * std::max(block.shared_wavefronts, block.l2_bytes / reached.l2_bytes_per_clock) / device.clock_hz;
  const double memory = work.dram_bytes / bandwidth, later = work.extra_dram_bytes / peak;
  estimate.memory = memory + later;
  estimate.overhead =
      work.launches * reached.launch_seconds + (work.launches - 1) * code_clocks(further_code) / device.clock_hz;
  const double on_sms = clocks / device.clock_hz;
  // Arithmetic and memory overlap, though never perfectly.
  estimate.seconds = std::max(on_sms, memory) + 0.25 * std::min(on_sms, memory) + later + estimate.overhead;
  return estimate;
}

double compulsory_bytes(const Contraction& contraction) {
  const double of_c = contraction.c_bytes() * (contraction.blend.beta == Scale::zero ? 1 : 2);
  const double of_bias =
      contraction.bias ? static_cast<double>(contraction.bias->elements()) * size_of(contraction.bias->dtype) : 0;
  return contraction.a_bytes() + contraction.b_bytes() + of_c + contraction.residual_bytes() + of_bias;
}

double workspace_share(double bytes, const DeviceFigures& device) {
  if (bytes * 2 >= static_cast<double>(device.l2_bytes)) return 1;
  const double l2 = std::max(device.sms, 1) * device.calibration.l2_bytes_per_clock * device.clock_hz;
  return std::min(1.0, device.dram_bytes_per_second * device.calibration.copy_efficiency / l2);
}

}  // namespace kiln::descriptor
