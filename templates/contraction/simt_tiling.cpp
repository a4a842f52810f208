#include "contraction/simt_tiling.h"

#include <algorithm>
#include <numeric>

#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

// Halves a vector until every thread has one to move.
int shared_out(int run, int64_t elements, int threads) {
  while (run > 1 && elements / run < threads) run /= 2;
  return run;
}

}  // namespace

SimtAccess simt_access(const SimtTiling& tiling, const Contraction& contraction) {
  using namespace dimension;
  const int64_t c = contraction.c_per_group(), k = tiling.block_k;
  int x_run = 1;
  if (contraction.channels_inner) x_run = widest_vector(contraction.x, {channel}, std::gcd(c, k));
  if (!contraction.channels_inner && contraction.pointwise && !contraction.images_inner) {
    x_run = widest_vector(contraction.x, {column, row, plane}, 8);
  }
  const bool divided =
      contraction.divided == Divided::pixels || contraction.divided == Divided::taps;  // w's regions begin anywhere
  const int w_run =
      contraction.filters_inner
          ? (divided ? 1 : widest_vector(contraction.w, {0}, std::gcd(contraction.k_per_group(), int64_t{8})))
      : contraction.channels_inner             ? widest_vector(contraction.w, {channel}, std::gcd(c, k))
      : contraction.divided == Divided::inputs ? 1  // taps are of different regions
                                               : widest_vector(contraction.w, {column, row, plane, channel}, k);
  const int y_run = !contraction.y_along_k && contraction.divided == Divided::inputs
                        ? 1  // segments begin anywhere
                        : output_vector_width(
                              contraction, contraction.y_along_k ? std::gcd(contraction.k_per_group(), int64_t{4}) : 4);
  return {shared_out(x_run, tiling.block_m * k, tiling.threads()),
          shared_out(w_run, tiling.block_n * k, tiling.threads()), y_run};
}

bool gathers(const Contraction& contraction) {
  return !contraction.channels_inner && !contraction.pointwise;
}

int lanes_m(const SimtTiling& tiling, bool y_along_k) {
  const int threads_m = tiling.block_m / tiling.thread_m, threads_n = tiling.block_n / tiling.thread_n;
  for (const int lanes : {y_along_k ? 4 : 8, y_along_k ? 8 : 4, 16, 2}) {
    if (threads_m % lanes == 0 && threads_n % (32 / lanes) == 0) return lanes;
  }
  return 0;
}

int64_t simt_chunks(const SimtTiling& tiling, const Contraction& contraction) {
  if (contraction.channels_inner) return contraction.taps() * ceil_div(contraction.c_per_group(), tiling.block_k);
  return ceil_div(contraction.c_per_group() * contraction.taps(), tiling.block_k);
}

int64_t channel_tiles(const SimtTiling& tiling, const Contraction& contraction) {
  return contraction.groups * ceil_div(contraction.k_per_group(), tiling.block_n);
}

int64_t pixel_tiles(const SimtTiling& tiling, const Contraction& contraction) {
  if (contraction.divided != Divided::inputs) {
    return ceil_div(contraction.n() * contraction.pixels_per_image(), tiling.block_m) * contraction.divisions();
  }
  int64_t tiles = 0;
  for (const auto& [pixels, number] : contraction.segments.sizes) {
    tiles += ceil_div(contraction.n() * pixels, tiling.block_m) * number;
  }
  return tiles;
}

int64_t simt_blocks(const SimtTiling& tiling, const Contraction& contraction) {
  return channel_tiles(tiling, contraction) * pixel_tiles(tiling, contraction) * contraction.products();
}

std::array<Count, 3> simt_grid(const SimtTiling& tiling, const Contractions& parts) {
  return grid_of(parts, [&](const Contraction& contraction) {
    return std::array{blocks_for(contraction, contraction.division_pixels(), tiling.block_m),
                      Count{channel_tiles(tiling, contraction)},
                      Count{contraction.divisions() * contraction.products()}};
  });
}

void add_simt_tiling(Prelude& prelude, const SimtTiling& tiling, const Contraction& contraction, int blocks) {
  const SimtAccess access = simt_access(tiling, contraction);
  prelude.constant("BLOCK_M", tiling.block_m).constant("BLOCK_N", tiling.block_n).constant("BLOCK_K", tiling.block_k);
  prelude.constant("THREAD_M", tiling.thread_m).constant("THREAD_N", tiling.thread_n);
  prelude.constant("SLICES", tiling.slices);
  prelude.constant("LANES_M", lanes_m(tiling, contraction.y_along_k)).constant("STAGES", tiling.stages);
  prelude.constant("MIN_BLOCKS", blocks);
  prelude.constant("X_RUN", access.x_run).constant("W_RUN", access.w_run).constant("Y_RUN", access.y_run);
}

}  // namespace kiln::descriptor
