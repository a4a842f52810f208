#include "counting.h"

#include <array>
#include <cmath>

namespace kiln::emulator {
namespace {

using Mix = std::array<uint64_t, instruction_classes>;

void add_mix(Counters& to, const Mix& mix) {
  const auto of = [&](InstructionClass c) { return mix[static_cast<size_t>(c)]; };
  to.fma_f32 = of(InstructionClass::fma_f32);
  to.fma_f16 = of(InstructionClass::fma_f16);
  to.fma_f64 = of(InstructionClass::fma_f64);
  to.integer = of(InstructionClass::integer);
  to.special = of(InstructionClass::special);
  to.conversion = of(InstructionClass::conversion);
  to.control = of(InstructionClass::control) + of(InstructionClass::barrier);
  to.barriers = of(InstructionClass::barrier);
  to.warp_exchange = of(InstructionClass::warp_exchange);
  to.global_load = of(InstructionClass::global_load);
  to.global_store = of(InstructionClass::global_store);
  to.global_atomic = of(InstructionClass::global_atomic);
  to.shared_load = of(InstructionClass::shared_load);
  to.shared_store = of(InstructionClass::shared_store);
  to.shared_atomic = of(InstructionClass::shared_atomic);
  to.local_access = of(InstructionClass::local_access);
  to.constant_access = of(InstructionClass::constant_access);
}

/// What `part` becomes when `counted` grows to `all`.
uint64_t scaled(uint64_t part, uint64_t counted, uint64_t all) {
  if (counted == 0 || counted == all) return part;
  return static_cast<uint64_t>(
      std::llround(static_cast<double>(part) * (static_cast<double>(all) / static_cast<double>(counted))));
}

/// `to` has its instruction mix. What the counted blocks' accesses did is scaled to the accesses of the launch, whose
/// number is known exactly.
void add_memory_behaviour(Counters& to, const LaunchRequest& request, const std::vector<const BlockRunner*>& runners) {
  uint64_t global_issues = 0, shared_issues = 0, sectors = 0, block_sectors = 0;
  uint64_t wavefronts = 0, generic_wavefronts = 0;
  std::vector<const SectorSet*> loaded, stored;
  for (const BlockRunner* runner : runners) {
    const MemoryRecorder& recorder = runner->recorder();
    global_issues += recorder.global_issues();
    shared_issues += recorder.shared_issues();
    sectors += recorder.global_sectors();
    block_sectors += recorder.block_sectors();
    wavefronts += recorder.shared_wavefronts();
    generic_wavefronts += recorder.generic_wavefronts();
    to.blocks_counted += recorder.blocks();
    loaded.push_back(&recorder.loaded());
    stored.push_back(&recorder.stored());
  }
  const uint64_t global = to.global_load + to.global_store + to.global_atomic;
  const uint64_t shared = to.shared_load + to.shared_store + to.shared_atomic;
  to.global_sectors = scaled(sectors, global_issues, global);
  to.block_sectors = scaled(block_sectors, global_issues, global);
  to.shared_wavefronts = scaled(wavefronts, shared_issues, shared) + scaled(generic_wavefronts, global_issues, global);
  const RegionFinder regions(request.memory.get(), request.kernel->variables);
  to.unique_load_sectors = estimate_distinct(loaded, regions, to.blocks_counted, to.blocks_total);
  to.unique_store_sectors = estimate_distinct(stored, regions, to.blocks_counted, to.blocks_total);
}

}  // namespace

Counters total_counters(const LaunchRequest& request, const std::vector<const BlockRunner*>& runners) {
  const Code& code = request.kernel->code;
  Counters result;
  Mix mix{};
  for (const BlockRunner* runner : runners) {
    for (size_t block = 0; block < code.blocks.size(); ++block) {
      const uint64_t times = runner->executions()[block];
      for (size_t c = 0; c < instruction_classes; ++c) mix[c] += times * code.blocks[block].mix[c];
      result.issued += times * code.blocks[block].length;
      result.active_lanes += runner->active_lanes()[block] * code.blocks[block].length;
    }
  }
  add_mix(result, mix);
  result.blocks_total = request.grid.count();
  add_memory_behaviour(result, request, runners);
  return result;
}

Counters& Counters::operator+=(const Counters& other) {
  issued += other.issued;
  fma_f32 += other.fma_f32;
  fma_f16 += other.fma_f16;
  fma_f64 += other.fma_f64;
  integer += other.integer;
  special += other.special;
  conversion += other.conversion;
  control += other.control;
  warp_exchange += other.warp_exchange;
  global_load += other.global_load;
  global_store += other.global_store;
  global_atomic += other.global_atomic;
  shared_load += other.shared_load;
  shared_store += other.shared_store;
  shared_atomic += other.shared_atomic;
  local_access += other.local_access;
  constant_access += other.constant_access;
  global_sectors += other.global_sectors;
  unique_load_sectors += other.unique_load_sectors;
  unique_store_sectors += other.unique_store_sectors;
  block_sectors += other.block_sectors;
  shared_wavefronts += other.shared_wavefronts;
  active_lanes += other.active_lanes;
  barriers += other.barriers;
  blocks_total += other.blocks_total;
  blocks_counted += other.blocks_counted;
  return *this;
}

}  // namespace kiln::emulator
