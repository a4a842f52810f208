#include "model/timing.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kiln::emulator {
namespace {

constexpr double sector_bytes = 32;
constexpr double warp_schedulers = 4;        // warp warp_schedulers of an SM, one warp instruction per clock each
constexpr double fill_bytes_per_clock = 64;  // from L2 into one SM
constexpr double exposed_part = 0.05;        // of the terms below the largest: overlap is never perfect
constexpr double block_start_clocks = 200;   // from a free slot to the block's first instruction

// Clocks by which one instruction holds up its own warp, where latency and the independent instructions that a warp has
// in flight (assumed, PTX does not tell) balance: latency / overlap.
constexpr double arithmetic_stall = 2;  // 4 clocks, 2 in flight
constexpr double special_stall = 8;
constexpr double exchange_stall = 12;
constexpr double barrier_stall = 20;
constexpr double loads_in_flight = 4;  // per warp
constexpr double l1_hit_extra = 4;     // clocks of an L1 hit beyond shared memory

uint64_t ceil_divide(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit;
}

// Work of the whole launch, as the SM that gets the most blocks sees it.
double on_busiest_sm(double work, const DeviceModel& device, const LaunchShape& shape) {
  const auto sms = static_cast<uint64_t>(device.limits.multiprocessors);
  return work * static_cast<double>(ceil_divide(shape.blocks, sms)) / static_cast<double>(shape.blocks);
}

double arithmetic_clocks(const DeviceRates& rates, const Counters& counters) {
  const auto clocks = [](uint64_t instructions, int lanes) {
    return static_cast<double>(instructions) * warp_size / lanes;
  };
  return std::max({clocks(counters.fma_f32, rates.fp32_lanes), clocks(counters.fma_f16, rates.fp16_lanes),
                   clocks(counters.fma_f64, rates.fp64_lanes), clocks(counters.integer, rates.integer_lanes),
                   clocks(counters.special, rates.special_lanes), clocks(counters.conversion, rates.conversion_lanes)});
}

// Shared memory, shuffles and L1 hits go through one data path.
double l1_clocks(const DeviceRates& rates, const Counters& counters) {
  const double wavefronts = static_cast<double>(counters.shared_wavefronts + counters.warp_exchange);
  const double sectors = static_cast<double>(counters.global_sectors);
  const double local_bytes = static_cast<double>(counters.local_access) * warp_size * sizeof(float);
  return wavefronts + (sectors * sector_bytes + local_bytes) / rates.l1_bytes_per_clock;
}

// Traffic of the launch below L1.
struct Traffic {
  double requested = 0;  // sectors that warps asked for
  double l2 = 0;         // sectors between the SMs and L2
  double dram = 0;       // sectors between L2 and memory
};

Traffic traffic(const DeviceModel& device, const LaunchShape& shape, const Counters& counters) {
  Traffic result;
  result.requested = static_cast<double>(counters.global_sectors);
  const double loads = static_cast<double>(counters.unique_load_sectors);
  const double unique = loads + static_cast<double>(counters.unique_store_sectors);
  result.l2 = std::clamp(static_cast<double>(counters.block_sectors), unique, std::max(unique, result.requested));
  result.dram = unique;
  if (loads == 0) return result;
  // Sectors that several blocks read are fetched again when L2 no longer holds them. Blocks that run together share:
  // of C concurrent blocks that tile a matrix, the square root of C read the same sector.
  const double slots = static_cast<double>(device.limits.multiprocessors) * shape.occupancy.blocks_per_multiprocessor;
  const double concurrent = std::min(slots, static_cast<double>(shape.blocks));
  const double refetched = std::max(0.0, result.l2 / std::sqrt(concurrent) - unique);
  const double missing = std::max(0.0, 1 - static_cast<double>(device.limits.l2_bytes) / (loads * sector_bytes));
  result.dram += refetched * missing;
  return result;
}

// Clocks from the issue of a global load to its use, averaged over where the sectors come from.
double load_latency(const DeviceRates& rates, const Traffic& traffic) {
  if (traffic.requested == 0) return 0;
  const double below_l1 = std::min(1.0, traffic.l2 / traffic.requested);
  const double below_l2 = traffic.l2 > 0 ? std::min(1.0, traffic.dram / traffic.l2) : 0;
  const double miss = rates.l2_latency + below_l2 * (rates.dram_latency - rates.l2_latency);
  return (1 - below_l1) * (rates.shared_latency + l1_hit_extra) + below_l1 * miss;
}

// One warp's chain of work, from its block's start to its end.
double warp_clocks(const DeviceRates& rates, const LaunchShape& shape, const Counters& counters, const Traffic& flow) {
  const double shared_loads = static_cast<double>(counters.shared_load + counters.shared_atomic);
  const double global_loads = static_cast<double>(counters.global_load + counters.global_atomic);
  const double slow = shared_loads + global_loads +
                      static_cast<double>(counters.local_access + counters.special + counters.warp_exchange);
  const double fast = std::max(0.0, static_cast<double>(counters.issued) - slow);
  const double clocks = fast * arithmetic_stall + static_cast<double>(counters.special) * special_stall +
                        static_cast<double>(counters.warp_exchange) * exchange_stall +
                        static_cast<double>(counters.barriers) * barrier_stall +
                        (shared_loads * rates.shared_latency +
                         static_cast<double>(counters.local_access) * (rates.shared_latency + l1_hit_extra) +
                         global_loads * load_latency(rates, flow)) /
                            loads_in_flight;
  const uint64_t warps = shape.blocks * ceil_divide(shape.threads_per_block, warp_size);
  return clocks / static_cast<double>(warps);
}

double waves(const DeviceModel& device, const LaunchShape& shape) {
  const auto slots = static_cast<uint64_t>(device.limits.multiprocessors) *
                     static_cast<uint64_t>(std::max(1, shape.occupancy.blocks_per_multiprocessor));
  return static_cast<double>(ceil_divide(shape.blocks, slots));
}

void combine(LaunchTime& time) {
  struct Term {
    std::string_view name;
    double seconds;
  };
  const std::array<Term, 6> terms = {Term{"issue", time.issue}, {"arithmetic", time.arithmetic},
                                     {"l1", time.l1},           {"l2", time.l2},
                                     {"dram", time.dram},       {"latency", time.latency}};
  const Term* largest = &terms.front();
  double sum = 0;
  for (const Term& term : terms) {
    if (term.seconds > largest->seconds) largest = &term;
    sum += term.seconds;
  }
  time.bound = largest->name;
  time.seconds = time.launch + largest->seconds + exposed_part * (sum - largest->seconds);
}

}  // namespace

LaunchTime model_launch(const DeviceModel& device, const LaunchShape& shape, const Counters& counters) {
  const DeviceRates& rates = device.rates;
  const double clock = device.limits.clock_khz * 1e3;
  const Traffic flow = traffic(device, shape, counters);
  const double l2_bytes = flow.l2 * sector_bytes;

  LaunchTime time;
  time.launch = rates.launch_seconds;
  time.issue = on_busiest_sm(static_cast<double>(counters.issued), device, shape) / warp_schedulers / clock;
  time.arithmetic = on_busiest_sm(arithmetic_clocks(rates, counters), device, shape) / clock;
  time.l1 = on_busiest_sm(l1_clocks(rates, counters), device, shape) / clock;
  time.l2 = std::max(l2_bytes / (rates.l2_bytes_per_clock * device.limits.multiprocessors),
                     on_busiest_sm(l2_bytes, device, shape) / fill_bytes_per_clock) /
            clock;
  time.dram = flow.dram * sector_bytes / rates.dram_bytes_per_second;
  time.latency = waves(device, shape) * (block_start_clocks + warp_clocks(rates, shape, counters, flow)) / clock;
  combine(time);
  return time;
}

double model_host_transfer(const DeviceModel& device, uint64_t bytes) {
  return device.rates.launch_seconds + static_cast<double>(bytes) / device.rates.host_bytes_per_second;
}

double model_device_transfer(const DeviceModel& device, uint64_t bytes) {
  return device.rates.launch_seconds + static_cast<double>(bytes) / device.rates.dram_bytes_per_second;
}

}  // namespace kiln::emulator
