#include "descriptor/occupancy.h"

#include <algorithm>
#include <cmath>

namespace kiln::descriptor {

double resident_blocks(const BlockResources& block, const Arch& arch) {
  const double warps = std::ceil(block.threads / 32);
  const double registers = std::ceil(block.registers / 8) * 8;
  const double shared = block.shared_bytes + 1024;
  double resident = std::min<double>(arch.blocks_per_sm, std::floor(arch.threads_per_sm / (warps * 32)));
  resident = std::min(resident, std::floor(arch.registers_per_sm / (registers * warps * 32)));
  return std::max(1.0, std::min(resident, std::floor(arch.shared_per_sm / shared)));
}

int registers_with(int warps, const Arch& arch) {
  const int warps_of_a_part = (warps + 3) / 4;
  return std::min(arch.registers_per_thread, arch.registers_per_sm / 4 / (warps_of_a_part * 32) / 8 * 8);
}

}  // namespace kiln::descriptor
