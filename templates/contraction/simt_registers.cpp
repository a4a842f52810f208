// How many registers a thread of a tiling takes.
#include <algorithm>

#include "contraction/simt_tiling.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

// Chunks on their way to shared memory: how many runs of a thread moves, of how many elements, and how many runs of b.
// The elements of one row of a gathered a count as a run.
struct Staging {
  int64_t a_runs, a_elements, b_runs;
};

Staging staging(const SimtTiling& tiling, const Contraction& contraction, const SimtAccess& access) {
  Staging result{};
  if (contraction.a_is_gathered()) {
    result.a_runs = std::max(1, tiling.block_m / tiling.threads());
    result.a_elements = ceil_div(tiling.block_k, std::max(1, tiling.threads() / tiling.block_m));
  } else {
    result.a_runs = ceil_div(int64_t{tiling.block_m} * tiling.block_k / access.a_run, tiling.threads());
    result.a_elements = access.a_run;
  }
  result.b_runs = ceil_div(int64_t{tiling.block_n} * tiling.block_k / access.b_run, tiling.threads());
  return result;
}

}  // namespace

int sum_registers(const SimtTiling& tiling) {
  return tiling.thread_m * tiling.thread_n + std::min(2 * (tiling.thread_m + tiling.thread_n), 24) + 28;
}

int simt_registers(const SimtTiling& tiling, const Contraction& contraction) {
  const SimtAccess access = simt_access(tiling, contraction);
  const Staging stage = staging(tiling, contraction, access);
  const bool gathers = contraction.a_is_gathered();
  const int64_t offset_registers = contraction.wide_index() ? 2 : 1;
  const auto words = [](int64_t elements, int bytes) { return ceil_div(elements * bytes, 4); };
  int64_t registers = sum_registers(tiling);
  // Operands that are loaded element by element take a register for each.
  const int64_t elements = stage.a_runs * stage.a_elements;
  registers += gathers ? elements : words(elements, size_of(contraction.a_type()));
  registers += access.b_run == 1 ? stage.b_runs : words(stage.b_runs * access.b_run, size_of(contraction.b_type()));
  // A swizzled tile has up to four addresses a quad.
  const auto swizzles = [&](int run) { return run == 1 ? 0 : std::min(4, tiling.block_k / run); };
  registers += contraction.b_along() == Along::columns ? 0 : swizzles(access.b_run) * tiling.thread_n / 4;
  registers += contraction.a_along() == Along::depth ? swizzles(access.a_run) * tiling.thread_m / 4 : 0;
  registers += offset_registers * 3 * stage.a_runs;
  registers += 2 * (stage.b_runs + (gathers ? elements : 0));  // addresses
  // Rows of a slice, and tiles of which there are two, have addresses that are no constants.
  registers += (tiling.slices > 1 ? 8 : 0) + (tiling.stages > 1 ? 6 : 0);
  return static_cast<int>(registers);
}

int min_blocks(const SimtTiling& tiling, const Contraction& contraction, const Arch& arch) {
  int blocks = std::min(arch.blocks_per_sm, arch.threads_per_sm / tiling.threads());
  const int registers = simt_registers(tiling, contraction);
  while (blocks > 1 && registers_with(blocks * tiling.warps(), arch) < registers) --blocks;
  return blocks;
}

int min_blocks(const SimtTiling& tiling, const Contractions& parts, const Arch& arch) {
  int blocks = arch.blocks_per_sm;
  for (const Contraction& part : parts.list) blocks = std::min(blocks, min_blocks(tiling, part, arch));
  return blocks;
}

bool registers_suffice(const SimtTiling& tiling, const Contraction& contraction, const Target& target) {
  if (staging(tiling, contraction, simt_access(tiling, contraction)).a_elements > 32) return false;
  constexpr int most_that_pays = 176;  // more would leave an SM too few warps
  return simt_registers(tiling, contraction) <= std::min(most_that_pays, registers_with(tiling.warps(), target.arch));
}

}  // namespace kiln::descriptor
