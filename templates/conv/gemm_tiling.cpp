#include "conv/gemm_tiling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::descriptor {
namespace {

// The values of BLOCK_K that may cut a filter of packed nchw into whole channels. For 1, 2, 4 or 8 taps and for filters
// that none of them fits, the powers of two are enough.
constexpr int whole_filter_values[] = {9, 18, 25, 27, 36, 49};

bool is_power_of_two(int value) {
  return (value & (value - 1)) == 0;
}

int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Whether x is loaded element by element, each row of a chunk with an address of its own.
bool gathers(const ConvProblem& conv) {
  return !conv.channels_inner && !conv.pointwise;
}

// Registers of values of chunks on their way to shared memory: how many rows of how many columns a thread moves.
struct Staging {
  int64_t pixel_columns, pixel_rows, filter_runs;
};

Staging staging(const GemmTiling& tiling, const ConvProblem& conv) {
  const GemmAccess access = gemm_access(tiling, conv);
  Staging result{};
  if (gathers(conv)) {
    result.pixel_columns = std::max(1, tiling.block_m / tiling.threads());
    result.pixel_rows = ceil_div(tiling.block_k, std::max(1, tiling.threads() / tiling.block_m));
  } else {
    result.pixel_columns = ceil_div(int64_t{tiling.block_m} * tiling.block_k / access.x_run, tiling.threads());
    result.pixel_rows = access.x_run;
  }
  result.filter_runs = ceil_div(int64_t{tiling.block_n} * tiling.block_k / access.w_run, tiling.threads());
  return result;
}

// Halves a vector until every thread has one to move.
int shared_out(int run, int64_t elements, int threads) {
  while (run > 1 && elements / run < threads) run /= 2;
  return run;
}

// Of what w's sectors hold, how many times as much is read as is used: where regions are divided by inputs, taps that
// stand side by side are read for different regions.
double w_spread(const ConvProblem& conv) {
  if (conv.divided != Divided::inputs || conv.filters_inner) return 1;
  int64_t pitch = 32 / size_of(conv.w.dtype);  // elements from one that is read to the next, of a sector at most
  for (const size_t i : {size_t{0}, size_t{dimension::channel}}) {
    if (conv.w.extents[i] > 1) pitch = std::min(pitch, conv.w.strides[i]);
  }
  const auto apart = [](const WindowAxis& axis, const RegionAxis& regions) {  // share of taps that are in other regions
    const double met =
        1 + static_cast<double>((axis.reach() - 1) * regions.regions) / static_cast<double>(regions.outputs);
    return std::min(1.0, met / static_cast<double>(axis.window));
  };
  const double share = apart(conv.planes, conv.region_axes.planes) * apart(conv.rows, conv.region_axes.rows) *
                       apart(conv.columns, conv.region_axes.columns);
  return std::max(1.0, static_cast<double>(pitch) * share);
}

// Bytes of w that L2 does not keep for the blocks that need what others left of a sector.
double reread_bytes(const ConvProblem& conv, const DeviceFigures& device) {
  const double bytes = static_cast<double>(conv.w.elements() * conv.region_axes.count()) * size_of(conv.w.dtype);
  return bytes * 2 < static_cast<double>(device.l2_bytes) ? 0.0 : bytes * (w_spread(conv) - 1);
}

}  // namespace

GemmAccess gemm_access(const GemmTiling& tiling, const ConvProblem& conv) {
  using namespace dimension;
  const int64_t c = conv.c_per_group(), k = tiling.block_k;
  int x_run = 1;
  if (conv.channels_inner) x_run = widest_vector(conv.x, {channel}, std::gcd(c, k));
  if (!conv.channels_inner && conv.pointwise && !conv.images_inner) {
    x_run = widest_vector(conv.x, {column, row, plane}, 8);
  }
  const bool divided = conv.divided == Divided::pixels || conv.divided == Divided::taps;  // w's regions begin anywhere
  const int w_run = conv.filters_inner
                        ? (divided ? 1 : widest_vector(conv.w, {0}, std::gcd(conv.k_per_group(), int64_t{8})))
                    : conv.channels_inner             ? widest_vector(conv.w, {channel}, std::gcd(c, k))
                    : conv.divided == Divided::inputs ? 1  // taps are of different regions
                                                      : widest_vector(conv.w, {column, row, plane, channel}, k);
  const int y_run = !conv.y_along_k && conv.divided == Divided::inputs
                        ? 1  // segments begin anywhere
                        : output_vector_width(conv, conv.y_along_k ? std::gcd(conv.k_per_group(), int64_t{4}) : 4);
  return {shared_out(x_run, tiling.block_m * k, tiling.threads()),
          shared_out(w_run, tiling.block_n * k, tiling.threads()), y_run};
}

int lanes_m(const GemmTiling& tiling, bool y_along_k) {
  const int threads_m = tiling.block_m / tiling.thread_m, threads_n = tiling.block_n / tiling.thread_n;
  for (const int lanes : {y_along_k ? 4 : 8, y_along_k ? 8 : 4, 16, 2}) {
    if (threads_m % lanes == 0 && threads_n % (32 / lanes) == 0) return lanes;
  }
  return 0;
}

int gemm_registers(const GemmTiling& tiling, const ConvProblem& conv) {
  const Staging stage = staging(tiling, conv);
  const GemmAccess access = gemm_access(tiling, conv);
  const bool gather = gathers(conv);
  const int64_t offset_registers = conv.wide_index ? 2 : 1;
  const auto words = [](int64_t elements, int bytes) { return ceil_div(elements * bytes, 4); };
  // Sums, rows of operands on their way, and addresses and counters.
  int64_t registers =
      int64_t{tiling.thread_m} * tiling.thread_n + std::min(2 * (tiling.thread_m + tiling.thread_n), 24) + 28;
  // What is loaded element by element takes a register each.
  registers += gather ? stage.pixel_columns * stage.pixel_rows
                      : words(stage.pixel_columns * stage.pixel_rows, size_of(conv.x.dtype));
  registers += access.w_run == 1 ? stage.filter_runs : words(stage.filter_runs * access.w_run, size_of(conv.w.dtype));
  // A swizzled tile has up to four addresses a quad.
  const auto swizzles = [&](int run) { return run == 1 ? 0 : std::min(4, tiling.block_k / run); };
  registers += conv.filters_inner ? 0 : swizzles(access.w_run) * tiling.thread_n / 4;
  registers += conv.channels_inner ? swizzles(access.x_run) * tiling.thread_m / 4 : 0;
  registers += offset_registers * 3 * stage.pixel_columns;
  registers += 2 * (stage.filter_runs + (gather ? stage.pixel_columns * stage.pixel_rows : 0));  // addresses
  // Rows of a slice, and tiles of which there are two, have addresses that are no constants.
  registers += (tiling.slices > 1 ? 8 : 0) + (tiling.stages > 1 ? 6 : 0);
  return static_cast<int>(registers);
}

int min_blocks(const GemmTiling& tiling, const ConvProblem& conv, const Arch& arch) {
  int blocks = std::min(arch.blocks_per_sm, arch.threads_per_sm / tiling.threads());
  while (blocks > 1 && registers_with(blocks * tiling.warps(), arch) < gemm_registers(tiling, conv)) --blocks;
  return blocks;
}

int min_blocks(const GemmTiling& tiling, const ConvParts& parts, const Arch& arch) {
  int blocks = arch.blocks_per_sm;
  for (const ConvPart& part : parts.list) blocks = std::min(blocks, min_blocks(tiling, part.conv, arch));
  return blocks;
}

int64_t gemm_chunks(const GemmTiling& tiling, const ConvProblem& conv) {
  if (conv.channels_inner) return conv.taps() * ceil_div(conv.c_per_group(), tiling.block_k);
  return ceil_div(conv.c_per_group() * conv.taps(), tiling.block_k);
}

int64_t channel_tiles(const GemmTiling& tiling, const ConvProblem& conv) {
  return conv.groups * ceil_div(conv.k_per_group(), tiling.block_n);
}

int64_t pixel_tiles(const GemmTiling& tiling, const ConvProblem& conv) {
  if (conv.divided != Divided::inputs) {
    return ceil_div(conv.n() * conv.pixels_per_image(), tiling.block_m) * conv.divisions();
  }
  int64_t tiles = 0;
  for (const auto& [pixels, number] : conv.segments.sizes) {
    tiles += ceil_div(conv.n() * pixels, tiling.block_m) * number;
  }
  return tiles;
}

int64_t gemm_blocks(const GemmTiling& tiling, const ConvProblem& conv) {
  return channel_tiles(tiling, conv) * pixel_tiles(tiling, conv) * conv.products();
}

std::array<Count, 3> gemm_grid(const GemmTiling& tiling, const ConvParts& parts) {
  return grid_of(parts, [&](const ConvProblem& conv) {
    return std::array{blocks_for(conv, conv.division_pixels(), tiling.block_m), Count{channel_tiles(tiling, conv)},
                      Count{conv.divisions() * conv.products()}};
  });
}

void add_gemm_tiling(Prelude& prelude, const GemmTiling& tiling, const ConvProblem& conv, int blocks) {
  const GemmAccess access = gemm_access(tiling, conv);
  prelude.constant("BLOCK_M", tiling.block_m).constant("BLOCK_N", tiling.block_n).constant("BLOCK_K", tiling.block_k);
  prelude.constant("THREAD_M", tiling.thread_m).constant("THREAD_N", tiling.thread_n);
  prelude.constant("SLICES", tiling.slices);
  prelude.constant("LANES_M", lanes_m(tiling, conv.y_along_k)).constant("STAGES", tiling.stages);
  prelude.constant("MIN_BLOCKS", blocks);
  prelude.constant("X_RUN", access.x_run).constant("W_RUN", access.w_run).constant("Y_RUN", access.y_run);
}

BlockWork gemm_block_work(const GemmTiling& tiling, const ConvProblem& conv, const Arch& arch, double chunks) {
  const GemmAccess access = gemm_access(tiling, conv);
  const double warps = tiling.warps(), k = tiling.block_k;
  const double sums = tiling.thread_m * tiling.thread_n, quads = (tiling.thread_m + tiling.thread_n) / 4.0;
  const double x_elements = tiling.block_m * k, w_elements = tiling.block_n * k;  // of a chunk
  const bool same_taps = tiling.block_k % conv.taps() == 0;
  // Instructions of an access and its address, and of a store to shared memory.
  const double x_fetch = gathers(conv) ? (same_taps ? 4 : 16) : 8.0 / access.x_run;
  const double w_fetch = 4.0 / access.w_run;
  const double stash = size_of(conv.x.dtype) == 4 ? 1 : 2;

  BlockWork work;
  work.threads = tiling.threads();
  work.registers = registers_with(min_blocks(tiling, conv, arch) * tiling.warps(), arch);
  work.warps_at_half_rate = 1;  // sums are independent of each other
  work.shared_bytes = tiling.shared_bytes();
  work.fma = chunks * warps * k / tiling.slices * sums;
  const double moves = (x_elements * (x_fetch + stash) + w_elements * (w_fetch + stash)) / 32;
  work.instructions = work.fma +
                      chunks * (warps * (k / tiling.slices * quads + (tiling.stages == 1 ? 24 : 20)) + moves) +
                      warps * (150 + 6 * sums);
  // A 16-byte access takes two passes however few addresses its lanes share.
  work.shared_wavefronts = chunks * (warps * k / tiling.slices * quads * 2 + (x_elements + w_elements * 1.5) / 32);
  const double x_bytes = x_elements * size_of(conv.x.dtype);
  const double w_bytes = w_elements * size_of(conv.w.dtype) * w_spread(conv);
  const int64_t x_pitch = conv.channels_inner ? conv.x.strides[dimension::channel]
                          : conv.images_inner ? conv.x.strides[dimension::batch]
                                              : conv.x.strides[dimension::column] * conv.columns.stride;
  const double x_spread = static_cast<double>(std::clamp<int64_t>(x_pitch, 1, 8));
  work.global_sectors = chunks * (x_bytes * x_spread + w_bytes * 1.4) / 32;
  // Neighbouring taps read the same rows, which L1 still holds.
  const double reuse = std::min(4.0, std::sqrt(static_cast<double>(conv.taps())));
  work.l2_bytes = chunks * (x_bytes * x_spread / reuse + w_bytes);
  // The chain of one warp: while it multiplies a chunk, the next is on its way; then it stores that and waits.
  const double multiply = k / tiling.slices * (sums * 1.25 + quads * 6);
  const double loads = (x_elements / access.x_run + w_elements / access.w_run) / work.threads;  // a thread
  const double load = 600 + 70 * loads;
  const double store = 4 * (x_elements + w_elements) / work.threads + (tiling.stages == 1 ? 80 : 40);
  const double gather = (tiling.slices - 1) * (sums * 8 + 100);
  work.latency_clocks = 1800 + load + chunks * (std::max(multiply, load) + store) + gather;
  return work;
}

bool warps_tile_the_block(const GemmTiling& tiling, const ConvProblem&, const Target&) {
  return tiling.threads() <= 256 * tiling.slices && tiling.threads() <= 512 &&
         lanes_m(tiling, false) != 0;  // the same lanes do for true
}

bool threads_tile_the_loads(const GemmTiling& tiling, const ConvProblem& conv, const Target&) {
  const int x_run = gemm_access(tiling, conv).x_run;
  if (!conv.channels_inner) return !conv.pointwise || tiling.block_m / x_run <= tiling.threads();
  return tiling.threads() % (tiling.block_k / x_run) == 0;
}

bool block_k_suits_the_filter(const GemmTiling& tiling, const ConvProblem& conv, const Target&) {
  if (conv.channels_inner) {
    return is_power_of_two(tiling.block_k) && (tiling.block_k < 2 * conv.c_per_group() || tiling.block_k == 8);
  }
  const auto whole = [&](int value) { return value % conv.taps() == 0; };
  const int64_t filter = conv.c_per_group() * conv.taps();
  const bool powers = is_power_of_two(static_cast<int>(conv.taps())) && conv.taps() <= 8;
  if (powers || !std::any_of(std::begin(whole_filter_values), std::end(whole_filter_values), whole)) {
    return is_power_of_two(tiling.block_k) && (tiling.block_k < 2 * filter || tiling.block_k == 8);
  }
  if (!whole(tiling.block_k)) return false;
  // A smaller chunk that holds the whole filter would do.
  return std::none_of(std::begin(whole_filter_values), std::end(whole_filter_values),
                      [&](int value) { return whole(value) && value < tiling.block_k && value >= filter; });
}

bool tile_suits_the_problem(const GemmTiling& tiling, const ConvProblem& conv, const Target&) {
  const int64_t pixels = conv.n() * conv.division_pixels();
  // Where even many blocks would not fill a device, large tiles only make fewer.
  constexpr int64_t few_blocks = 64, large_tile = 64 * 64;
  const bool few = gemm_blocks(tiling, conv) < few_blocks;
  return (tiling.block_m == 32 || tiling.block_m < 2 * pixels) &&
         (tiling.block_n == 32 || tiling.block_n < 2 * conv.k_per_group()) &&
         (!few || tiling.block_m * tiling.block_n <= large_tile);
}

bool tiles_fit_shared_memory(const GemmTiling& tiling, const ConvProblem&, const Target& target) {
  return tiling.shared_bytes() <= target.arch.shared_per_block_default;
}

bool registers_suffice(const GemmTiling& tiling, const ConvProblem& conv, const Target& target) {
  if (staging(tiling, conv).pixel_rows > 32) return false;
  constexpr int most_that_pays = 176;  // more would leave an SM too few warps
  return gemm_registers(tiling, conv) <= std::min(most_that_pays, registers_with(tiling.warps(), target.arch));
}

bool slices_are_worthwhile(const GemmTiling& tiling, const ConvProblem& conv, const Target&) {
  if (tiling.slices == 1) return true;
  constexpr int64_t small_grid = 1024;  // blocks; beyond, other blocks fill the SMs
  constexpr int fewest_rows = 4;
  return tiling.block_k % tiling.slices == 0 && tiling.block_k / tiling.slices >= fewest_rows &&
         gemm_blocks(tiling, conv) <= small_grid;
}

std::string gemm_template(const std::string& name) {
  return (name.starts_with("gemm") ? "gemm/" : "conv/") + name + ".cu";
}

Algorithm gemm_convolution(const std::string& name, const std::string& operation,
                           std::optional<std::string> (*refusal)(const ConvProblem&)) {
  const auto program = [name](const GemmTiling& tiling, const ConvParts& parts, const Target& target,
                              const Emitter& emit) {
    Launch launch = conv_launch(name, tiling.threads());
    launch.grid = gemm_grid(tiling, parts);
    return program_of(parts, emit, {launch}, [&](const ConvProblem& conv) {
      Prelude prelude = conv_prelude(conv);
      add_gemm_tiling(prelude, tiling, conv, min_blocks(tiling, parts, target.arch));
      return prelude;
    });
  };
  const auto predict = [](const GemmTiling& tiling, const ConvParts& parts, const Target& target,
                          const DeviceFigures& device) {
    const GridWork work = work_of_parts(parts, [&](const ConvProblem& conv) {
      GridWork part;
      part.block = gemm_block_work(tiling, conv, target.arch, static_cast<double>(gemm_chunks(tiling, conv)));
      part.blocks = static_cast<double>(gemm_blocks(tiling, conv));
      part.dram_bytes = compulsory_bytes(conv) + reread_bytes(conv, device);
      return part;
    });
    return grid_estimate(work, target.arch, device);
  };
  return add_gemm_space(
             describe<GemmTiling, ConvParts>(name, operation, gemm_template(name))
                 .applies([refusal](const ConvParts& parts, const Target&) { return parts_refusal(parts, refusal); }))
      .takes_prologue()
      .program(program)
      .estimate(predict);
}

std::optional<std::string> no_refusal(const ConvProblem&) {
  return std::nullopt;
}

}  // namespace kiln::descriptor
