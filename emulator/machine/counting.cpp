#include "counting.h"

#include <array>
#include <cmath>
#include <iterator>

namespace kiln::emulator {
namespace {

using Mix = std::array<uint64_t, instruction_classes>;

void add_mix(Counters& to, const Mix& mix) {
  for (size_t c = 0; c < std::size(class_counters); ++c) to.*class_counters[c] = mix[c];
  to.barriers = mix[static_cast<size_t>(InstructionClass::barrier)];
  to.control += to.barriers;
  to.matrix_loads = mix[static_cast<size_t>(InstructionClass::matrix_load)];
  to.shared_load += to.matrix_loads;
  to.matrix_stores = mix[static_cast<size_t>(InstructionClass::matrix_store)];
  to.shared_store += to.matrix_stores;
}

/// Scales `part`, a count among `counted`, to `all`.
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
      result.tensor_multiply_adds += times * code.blocks[block].multiply_adds;
      result.active_lanes += runner->active_lanes()[block] * code.blocks[block].length;
    }
  }
  add_mix(result, mix);
  result.blocks_total = request.grid.count();
  add_memory_behaviour(result, request, runners);
  return result;
}

}  // namespace kiln::emulator
