#include <algorithm>

#include "contraction/simt_tiling.h"

namespace kiln::descriptor {
namespace {

// The values of BLOCK_K that may cut a filter of packed nchw into whole channels. For 1, 2, 4 or 8 taps and for filters
// that none of them fits, the powers of two are enough.
constexpr int whole_filter_values[] = {9, 18, 25, 27, 36, 49};

bool is_power_of_two(int value) {
  return (value & (value - 1)) == 0;
}

}  // namespace

bool warps_tile_the_block(const SimtTiling& tiling, const Contraction&, const Target&) {
  return tiling.threads() <= 256 * tiling.slices && tiling.threads() <= 512 &&
         lanes_m(tiling, false) != 0;  // the same lanes do for true
}

bool threads_tile_the_loads(const SimtTiling& tiling, const Contraction& contraction, const Target&) {
  const int x_run = simt_access(tiling, contraction).x_run;
  if (!contraction.channels_inner) return !contraction.pointwise || tiling.block_m / x_run <= tiling.threads();
  return tiling.threads() % (tiling.block_k / x_run) == 0;
}

bool block_k_suits_the_filter(const SimtTiling& tiling, const Contraction& contraction, const Target&) {
  if (contraction.channels_inner) {
    return is_power_of_two(tiling.block_k) && (tiling.block_k < 2 * contraction.c_per_group() || tiling.block_k == 8);
  }
  const auto whole = [&](int value) { return value % contraction.taps() == 0; };
  const int64_t filter = contraction.c_per_group() * contraction.taps();
  const bool powers = is_power_of_two(static_cast<int>(contraction.taps())) && contraction.taps() <= 8;
  if (powers || !std::any_of(std::begin(whole_filter_values), std::end(whole_filter_values), whole)) {
    return is_power_of_two(tiling.block_k) && (tiling.block_k < 2 * filter || tiling.block_k == 8);
  }
  if (!whole(tiling.block_k)) return false;
  // A smaller chunk that holds the whole filter would do.
  return std::none_of(std::begin(whole_filter_values), std::end(whole_filter_values),
                      [&](int value) { return whole(value) && value < tiling.block_k && value >= filter; });
}

bool tile_suits_the_problem(const SimtTiling& tiling, const Contraction& contraction, const Target&) {
  const int64_t pixels = contraction.n() * contraction.division_pixels();
  // Where even many blocks would not fill a device, large tiles only make fewer.
  constexpr int64_t few_blocks = 64, large_tile = 64 * 64;
  const bool few = simt_blocks(tiling, contraction) < few_blocks;
  return (tiling.block_m == 32 || tiling.block_m < 2 * pixels) &&
         (tiling.block_n == 32 || tiling.block_n < 2 * contraction.k_per_group()) &&
         (!few || tiling.block_m * tiling.block_n <= large_tile);
}

bool tiles_fit_shared_memory(const SimtTiling& tiling, const Contraction&, const Target& target) {
  return tiling.shared_bytes() <= target.arch.shared_per_block_default;
}

bool slices_are_worthwhile(const SimtTiling& tiling, const Contraction& contraction, const Target&) {
  if (tiling.slices == 1) return true;
  constexpr int64_t small_grid = 1024;  // blocks; beyond, other blocks fill the SMs
  constexpr int fewest_rows = 4;
  return tiling.block_k % tiling.slices == 0 && tiling.block_k / tiling.slices >= fewest_rows &&
         simt_blocks(tiling, contraction) <= small_grid;
}

}  // namespace kiln::descriptor
