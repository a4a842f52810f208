#include <algorithm>

#include "contraction/simt_tiling.h"

namespace kiln::descriptor {
namespace {

// The values of BLOCK_K that may be whole periods. For periods of 1, 2, 4 or 8, and for those that none of them is a
// multiple of, the powers of two are enough.
constexpr int whole_period_values[] = {9, 18, 25, 27, 36, 49};

bool is_power_of_two(int value) {
  return (value & (value - 1)) == 0;
}

}  // namespace

bool warps_tile_the_block(const SimtTiling& tiling, const Contraction&, const Target&) {
  return tiling.threads() <= 256 * tiling.slices && tiling.threads() <= 512 &&
         lanes_m(tiling, Along::rows) != 0;  // the same lanes do along the columns
}

bool threads_tile_the_loads(const SimtTiling& tiling, const Contraction& contraction, const Target&) {
  const int a_run = simt_access(tiling, contraction).a_run;
  if (contraction.a_along() == Along::depth) return tiling.threads() % (tiling.block_k / a_run) == 0;
  return contraction.a_is_gathered() || tiling.block_m / a_run <= tiling.threads();
}

bool block_k_suits_the_depth(const SimtTiling& tiling, const Contraction& contraction, const Target&) {
  const int64_t depth = contraction.depth(), period = contraction.period();
  if (contraction.a_along() == Along::depth) {
    return is_power_of_two(tiling.block_k) && (tiling.block_k < 2 * period || tiling.block_k == 8);
  }
  const auto whole = [&](int value) { return value % period == 0; };
  const bool powers = is_power_of_two(static_cast<int>(period)) && period <= 8;
  if (powers || !std::any_of(std::begin(whole_period_values), std::end(whole_period_values), whole)) {
    return is_power_of_two(tiling.block_k) && (tiling.block_k < 2 * depth || tiling.block_k == 8);
  }
  if (!whole(tiling.block_k)) return false;
  // A smaller chunk that holds the whole depth would do.
  return std::none_of(std::begin(whole_period_values), std::end(whole_period_values),
                      [&](int value) { return whole(value) && value < tiling.block_k && value >= depth; });
}

bool is_open_tiling(const SimtTiling& tiling, const Contraction& contraction) {
  const auto has = [&](int block_m, int block_n, int thread_m, int thread_n) {
    return tiling.block_m == block_m && tiling.block_n == block_n && tiling.thread_m == thread_m &&
           tiling.thread_n == thread_n;
  };
  // Whole channels in a chunk need no division for each element.
  int block_k = 16;
  if (contraction.a_along() != Along::depth) {
    const int64_t period = contraction.period();
    for (const int value : {18, 25, 27, 49}) {
      if (period > 1 && value % period == 0 && block_k == 16 && 16 % period != 0) block_k = value;
    }
  }
  if (contraction.addresses.divided != Divided::nothing) return false;  // regions are constants
  if (tiling.block_k != block_k || tiling.slices != 1) return false;
  // The address of each row of a long chunk takes a register.
  if (block_k == 49) return tiling.stages == 1 && (has(64, 64, 4, 4) || has(128, 32, 4, 4) || has(32, 128, 4, 4));
  return tiling.stages == 2 && (has(128, 128, 8, 8) || has(64, 64, 8, 4) || has(32, 32, 4, 4) || has(128, 32, 8, 4));
}

bool tile_suits_the_problem(const SimtTiling& tiling, const Contraction& contraction, const Target&) {
  const int64_t rows = contraction.n() * contraction.division_rows();
  // Where even many blocks would not fill a device, large tiles only make fewer.
  constexpr int64_t few_blocks = 64, large_tile = 64 * 64;
  const bool few = tiles_of(tiling.block_m, tiling.block_n, contraction) < few_blocks;
  return (tiling.block_m == 32 || tiling.block_m < 2 * rows) &&
         (tiling.block_n == 32 || tiling.block_n < 2 * contraction.columns()) &&
         (!few || tiling.block_m * tiling.block_n <= large_tile);
}

bool tiles_fit_shared_memory(const SimtTiling& tiling, const Contraction&, const Target& target) {
  // A launch may ask for more; the space ends where none has to.
  return tiling.most_shared_bytes() <= target.arch.shared_per_block_default;
}

bool slices_are_worthwhile(const SimtTiling& tiling, const Contraction& contraction, const Target&) {
  if (tiling.slices == 1) return true;
  constexpr int64_t small_grid = 1024;  // blocks; beyond, other blocks fill the SMs
  constexpr int fewest_rows = 4;
  return tiling.block_k % tiling.slices == 0 && tiling.block_k / tiling.slices >= fewest_rows &&
         tiles_of(tiling.block_m, tiling.block_n, contraction) <= small_grid;
}

}  // namespace kiln::descriptor
