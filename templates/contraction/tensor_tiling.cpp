#include "contraction/tensor_tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "descriptor/numbers.h"
#include "kiln/generator/operation.h"

namespace kiln::descriptor {
namespace {

constexpr int fragment = 16;     // rows or columns of the fragments that a warp loads
constexpr int most_bytes = 16;   // that one access moves
constexpr int64_t c_piece = 8;   // elements of c, at most, that one access moves
constexpr int sum_padding = 8;   // elements behind a row of sums in shared memory
constexpr int short_chunk = 64;  // bytes of the depth

// Registers for the addresses of a gathered a (lib/im2col_pixels.cuh), beside those for what is loaded. If chunks are
// whole periods, an element is as far from its chunk's first in every chunk, and the compiler keeps these distances, 64
// bits each, and a word of each column's taps. Else taps are found anew for each chunk, and half of the addresses are
// there at once; before 8.0 all of them, those of single elements of b too.
int64_t tap_registers(const TensorTiling& tiling, const Contraction& contraction, const TensorAccess& access,
                      const Arch& arch) {
  const int64_t columns = std::max(1, tiling.block_m / tiling.threads());
  const int64_t elements = columns * ceil_div(tiling.block_k, std::max(1, tiling.threads() / tiling.block_m));
  if (tiling.block_k % contraction.period() == 0) return 2 * elements + columns;
  if (arch.at_least(8, 0)) return elements / 2;
  const int64_t of_b = access.b_run > 1 ? 0 : ceil_div(int64_t{tiling.block_n} * tiling.block_k, tiling.threads());
  return elements + of_b;
}

bool runs_along_the_depth(const Contraction& contraction) {
  return contraction.a_along() == Along::depth && contraction.b_along() == Along::depth;
}

// Products of two types of 8-bit integers whose sum has a place in 32 bits, whatever the integers are.
int64_t most_products(DType a, DType b) {
  const auto largest = [](DType dtype) { return dtype == DType::u8 ? int64_t{255} : int64_t{128}; };
  return std::numeric_limits<int32_t>::max() / (largest(a) * largest(b));
}

// Why tensor cores cannot multiply integers by integers; nothing if they can.
std::optional<std::string> integer_refusal(const Contraction& contraction, const OperandNames& names,
                                           const Target& target) {
  if (!target.arch.at_least(8, 0)) return "tensor cores multiply 8-bit integers from sm_80 on";
  if (!runs_along_the_depth(contraction)) {
    return fmt::format(
        "the summed dimension is not innermost in both of {} and {}, and elements of 8 bits are not turned", names.a,
        names.b);
  }
  const int64_t most = most_products(contraction.a_type(), contraction.b_type());
  if (contraction.depth() > most) return fmt::format("sums of more than {} products may not fit into 32 bits", most);
  return std::nullopt;
}

// Why tensor cores do not add products in f16; nothing if they do.
std::optional<std::string> f16_sums_refusal(const Contraction& contraction) {
  if (contraction.a_type() != DType::f16 || contraction.b_type() != DType::f16) {
    return "tensor cores add products in f16 where both factors are f16";
  }
  if (!contraction.arithmetic.fast) return "sums are in f16, which the request does not permit: `fast` would";
  return std::nullopt;
}

// Whether a copy of a, of lib/copied_operands.cuh, is of channels under a tap.
bool has_tap_tables(const Contraction& contraction, Bring bring) {
  return bring == Bring::copied && !contraction.addresses.images_inner;
}

}  // namespace

DType tensor_factor(const Contraction& contraction) {
  const DType both = common_type(contraction.addresses.x, contraction.addresses.w);
  return size_of(both) > 1 || runs_along_the_depth(contraction) ? both : DType::f16;
}

int tensor_element_bytes(const Contraction& contraction) {
  return size_of(tensor_factor(contraction));
}

bool tensor_cores_take_fp8(const Arch& arch) {
  return (arch.major == 8 && arch.minor == 9) || arch.major >= 12;
}

void add_tensor_factor(Prelude& prelude, DType factor, const Arithmetic& arithmetic, bool f16_sums) {
  prelude.type("Factor", factor).flag("PROMOTES", !arithmetic.fast).flag("F16_SUMS", f16_sums);
}

int64_t shared_bytes(const TensorTiling& tiling, const Contraction& contraction) {
  const int64_t line = int64_t{tiling.block_k} * tensor_element_bytes(contraction);
  const int64_t a = tiling.stages * tiling.block_m * line, b = tiling.block_n * line;
  if (tiling.tiles > 1) return a + contraction.chunks(tiling.block_k) * b + tiling.exchange_bytes();
  return std::max<int64_t>(a + tiling.stages * b, tiling.exchange_bytes());
}

unsigned shared_bytes(const TensorTiling& tiling, const Contractions& parts) {
  int64_t most = 0;
  for (const Contraction& part : parts.list) most = std::max(most, shared_bytes(tiling, part));
  return static_cast<unsigned>(most);
}

int TensorTiling::exchange_bytes() const {
  return warps() * fragment * (warp_n + sum_padding) * 4;
}

TensorAccess tensor_access(const Contraction& contraction, Bring bring) {
  const bool images = bring == Bring::copied && contraction.addresses.images_inner;
  const int64_t piece = most_bytes / tensor_element_bytes(contraction);
  return {images ? contraction.a_run_of_images(piece) : contraction.a_run(piece), contraction.b_run(piece),
          contraction.c_run(c_piece)};
}

std::string order_on_tensor_cores(const TensorTiling& tiling, const Contraction& contraction, Bring bring) {
  constexpr int step_bytes = 32;  // of the depth (lib/tensor_tile.cuh)
  const ConvolutionAddresses& conv = contraction.addresses;
  const DType factor = tensor_factor(contraction);
  std::string steps = fmt::format("tensor cores, steps of {} {}{}", step_bytes / size_of(factor), to_string(factor),
                                  contraction.f16_sums ? " with sums in f16" : "");
  const int64_t channels = conv.c_per_group(), taps = conv.taps();
  if (taps == 1) return steps;
  if (contraction.a_along() != Along::depth) {
    return fmt::format("{}, {} channels after each other, {} taps of each", steps, channels, taps);
  }
  // Copies take a chunk of channels under all taps (lib/copied_operands.cuh).
  const bool in_chunks = bring == Bring::copied && channels > tiling.block_k;
  return fmt::format("{}, {} taps after each other, {} of {} channels at a time", steps, taps,
                     in_chunks ? tiling.block_k : channels, channels);
}

std::optional<std::string> tensor_type_refusal(DType a, DType b, const Arithmetic& arithmetic, const Target& target) {
  if (a != b || !DTypes::floating.holds(a)) {
    return "tensor cores multiply f16 by f16, bf16 by bf16 and, with tf32, f32 by f32";
  }
  if (a == DType::f32 && !arithmetic.tf32) {
    return "tensor cores round f32 to tf32, which the request does not permit";
  }
  if (a != DType::f16 && !target.arch.at_least(8, 0)) {
    return a == DType::bf16 ? "tensor cores multiply bf16 from sm_80 on" : "tensor cores multiply tf32 from sm_80 on";
  }
  return std::nullopt;
}

std::optional<std::string> tensor_refusal(const Contraction& contraction, const OperandNames& names, Bring bring,
                                          const Target& target) {
  if (contraction.f16_sums) {
    if (auto why = f16_sums_refusal(contraction)) return why;
  }
  const DType a = contraction.a_type(), b = contraction.b_type();
  const bool a_is_byte = size_of(a) == 1, b_is_byte = size_of(b) == 1, bytes_alone = a_is_byte && b_is_byte;
  if (bytes_alone && !is_floating(a) && !is_floating(b)) {
    if (auto why = integer_refusal(contraction, names, target)) return why;
  }
  if (!bytes_alone) {
    const DType wide_a = a_is_byte ? b : a, wide_b = b_is_byte ? a : b;
    if (auto why = tensor_type_refusal(wide_a, wide_b, contraction.arithmetic, target)) return why;
  }
  if (bring == Bring::staged) return std::nullopt;
  if (!target.arch.at_least(8, 0)) return "asynchronous copies need sm_80";
  if (a_is_byte != b_is_byte) {
    return fmt::format("elements of {} have {} bits and those of {} {}, and copies do not change them", names.a,
                       8 * size_of(a), names.b, 8 * size_of(b));
  }
  if (a_is_byte && tensor_element_bytes(contraction) > 1) {
    return fmt::format(
        "elements of 8 bits are copied where both {} and {} are fp8, or both integers, and the summed dimension is "
        "innermost in both",
        names.a, names.b);
  }
  const ConvolutionAddresses& addresses = contraction.addresses;
  if (addresses.divided != Divided::nothing) return "filters differ between regions";
  const TensorAccess access = tensor_access(contraction, bring);
  constexpr int fewest_bytes = 4;  // of an asynchronous copy
  const int bytes = tensor_element_bytes(contraction);
  const bool a_inner = addresses.images_are_channels ? addresses.images_inner : contraction.a_along() == Along::depth;
  const bool b_inner = !addresses.images_are_channels || contraction.b_along() == Along::columns;
  const bool a_is_copied = a_inner && access.a_run * bytes >= fewest_bytes;
  if (!a_is_copied || !b_inner || access.b_run * bytes < fewest_bytes) {
    const std::string_view together = bytes == 1 ? "fours" : "pairs";
    return a_is_copied ? fmt::format("elements of {} do not stand in {} at 4-byte addresses", names.b, together)
                       : fmt::format("the summed dimension of {} is not innermost, or not in {} at 4-byte addresses",
                                     names.a, together);
  }
  return std::nullopt;
}

std::optional<std::string> tap_refusal(const Contraction& contraction, Bring bring) {
  constexpr int64_t most_tap_bits = 31, most_taps = 1100;
  const ConvolutionAddresses& conv = contraction.addresses;
  if (bring != Bring::copied || conv.images_are_channels) return std::nullopt;
  if (tap_bits(conv) > most_tap_bits) {
    return "windows reach beyond x, and the filter has more than 31 planes, rows and columns there";
  }
  if (conv.taps() > most_taps) return "the filter has more than 1100 taps";  // tables of them are constant memory
  return std::nullopt;
}

std::optional<std::string> tensor_refusal(const Contractions& parts, Bring bring, const Target& target,
                                          ContractionRefusal refusal) {
  if (auto own = refusal_of(parts, refusal)) return own;
  for (const Contraction& part : parts.list) {
    if (auto why = tensor_refusal(part, parts.operands, bring, target)) return why;
    if (auto why = tap_refusal(part, bring)) return why;
  }
  return std::nullopt;
}

int tensor_registers(const TensorTiling& tiling, const Contraction& contraction, Bring bring, const Arch& arch) {
  const TensorAccess access = tensor_access(contraction, bring);
  const int sums = tiling.warp_m * tiling.warp_n / 32;
  const int fragments = (tiling.warp_m + tiling.warp_n) / 4;  // 4 registers for each 16 rows or columns
  const int64_t a_runs = ceil_div(int64_t{tiling.block_m} * tiling.block_k / access.a_run, tiling.threads());
  const int64_t b_runs = ceil_div(int64_t{tiling.block_n} * tiling.block_k / access.b_run, tiling.threads());
  const int64_t offset = contraction.wide_index() ? 2 : 1;
  int64_t registers = sums + 30;
  const int bytes = tensor_element_bytes(contraction);
  const bool in_fp8 = bytes == 1 && is_floating(contraction.a_type());
  if (in_fp8 && !tensor_cores_take_fp8(arch)) {
    registers += fragments;
  } else if (in_fp8 && !contraction.arithmetic.fast) {
    // Sums of single steps: the compiler begins as many as half of a chunk has before it adds them.
    registers += sums * tiling.block_k / 64;
  }
  if (contraction.f16_sums) registers += 16;  // sums of steps, and what becomes of them
  if (bring == Bring::copied) {
    // Copies of less than a piece are many, and the compiler keeps more of their addresses.
    if (access.a_run * bytes < most_bytes) registers += a_runs;
    if (access.b_run * bytes < most_bytes) registers += b_runs * 3 / 2;
    return static_cast<int>(registers + 2 * fragments + a_runs * (offset + 1) + b_runs * offset);
  }
  const auto words = [bytes](int64_t runs, int run) { return runs * ceil_div(int64_t{run} * bytes, 4); };
  registers += fragments + words(a_runs, access.a_run) + words(b_runs, access.b_run) + 2 * b_runs;
  if (!contraction.a_is_gathered()) return static_cast<int>(registers + offset * 3 * a_runs);
  return static_cast<int>(registers + offset * 3 + tap_registers(tiling, contraction, access, arch));
}

int tensor_min_blocks(const TensorTiling& tiling, const Contractions& parts, Bring bring, const Arch& arch) {
  int blocks = std::min({arch.blocks_per_sm, arch.threads_per_sm / tiling.threads(),
                         arch.shared_per_sm / static_cast<int>(shared_bytes(tiling, parts) + 1024)});
  int registers = 0;
  for (const Contraction& part : parts.list)
    registers = std::max(registers, tensor_registers(tiling, part, bring, arch));
  while (blocks > 1 && registers_with(blocks * tiling.warps(), arch) < registers) --blocks;
  return std::max(blocks, 1);
}

void add_tensor_tiling(Prelude& prelude, const TensorTiling& tiling, const Contraction& contraction, Bring bring,
                       int blocks, std::optional<OwnTiles> own) {
  const TensorAccess access = tensor_access(contraction, bring);
  prelude.constant("BLOCK_M", tiling.block_m).constant("BLOCK_N", tiling.block_n).constant("BLOCK_K", tiling.block_k);
  prelude.constant("WARP_M", tiling.warp_m).constant("WARP_N", tiling.warp_n).constant("THREADS", tiling.threads());
  prelude.constant("STAGES", tiling.stages);
  if (tiling.tiles > 1) prelude.constant("TILES", tiling.tiles);
  prelude.constant("SHARED_BYTES", own ? own->shared_bytes : shared_bytes(tiling, contraction));
  prelude.constant("MIN_BLOCKS", blocks);
  prelude.flag("WHOLE_CHANNELS", tiling.block_k % contraction.addresses.taps() == 0);
  if (has_tap_tables(contraction, bring)) add_filter_taps(prelude, contraction.addresses);
  if (has_tap_tables(contraction, bring) && !own) add_tap_tables(prelude, contraction.addresses);
  prelude.constant("X_RUN", access.a_run)
      .constant("W_RUN", access.b_run)
      .constant("Y_RUN", own ? own->c_run : access.c_run);
  add_tensor_factor(prelude, tensor_factor(contraction), contraction.arithmetic, contraction.f16_sums);
}

bool tensor_warps_tile_the_block(const TensorTiling& tiling) {
  constexpr int most_sums = 128, fewest_sums = 16, most_warps = 8;  // of a thread; of a block
  const int sums = tiling.warp_m * tiling.warp_n / 32;
  return tiling.block_m % tiling.warp_m == 0 && tiling.block_n % tiling.warp_n == 0 && sums <= most_sums &&
         sums >= fewest_sums && tiling.warps() >= 2 && tiling.warps() <= most_warps;
}

bool tensor_chunk_has_steps(const TensorTiling& tiling, const Contraction& contraction) {
  const int bytes = tiling.block_k * tensor_element_bytes(contraction);
  return bytes == short_chunk || bytes == 2 * short_chunk;
}

bool tensor_threads_tile_the_loads(const TensorTiling& tiling, const Contraction& contraction, Bring bring) {
  const TensorAccess access = tensor_access(contraction, bring);
  const auto tiles = [&](int line, int run) { return tiling.threads() % (line / run) == 0; };
  constexpr int most_rows = 32;  // a bit for each in lib/copied_operands.cuh, and in lib/im2col_pixels.cuh
  if (bring == Bring::copied && tiling.block_n * tiling.block_k / access.b_run > most_rows * tiling.threads()) {
    return false;
  }
  if (contraction.b_along() == Along::columns ? !tiles(tiling.block_n, access.b_run)
                                              : !tiles(tiling.block_k, access.b_run)) {
    return false;
  }
  if (contraction.a_along() == Along::depth) return tiles(tiling.block_k, access.a_run);
  if (bring == Bring::copied) return tiles(tiling.block_m, access.a_run);
  if (contraction.a_is_gathered()) {
    const int step = std::max(1, tiling.threads() / tiling.block_m);
    return ceil_div(tiling.block_k, step) <= most_rows &&
           (tiling.block_m % tiling.threads() == 0 || tiling.threads() % tiling.block_m == 0);
  }
  return tiling.threads() % (tiling.block_m / access.a_run) == 0;
}

bool tensor_chunk_suits_the_depth(const TensorTiling& tiling, const Contraction& contraction) {
  const int64_t length = contraction.a_along() == Along::depth ? contraction.period() : contraction.depth();
  return tiling.block_k * tensor_element_bytes(contraction) == short_chunk || tiling.block_k < 2 * length;
}

bool tensor_tile_suits_the_problem(const TensorTiling& tiling, const Contraction& contraction) {
  const int64_t rows = contraction.n() * contraction.division_rows();
  return (tiling.block_m == 32 || tiling.block_m < 2 * rows) &&
         (tiling.block_n == 32 || tiling.block_n < 2 * contraction.columns());
}

bool tensor_tiles_follow(const TensorTiling& tiling, const Contraction& contraction) {
  constexpr int64_t longest = 512;  // bytes of the depth: with more, an H200 ran blocks of one tile as fast or faster
  const int64_t line = int64_t{tiling.block_k} * tensor_element_bytes(contraction);
  return contraction.chunks(tiling.block_k) * line <= longest && contraction.row_tiles(tiling.block_m) >= tiling.tiles;
}

bool is_open_tiling(const TensorTiling& tiling, const Contraction& contraction, Bring bring) {
  const auto has = [&](int block_m, int block_n, int warp_m, int warp_n) {
    return tiling.block_m == block_m && tiling.block_n == block_n && tiling.warp_m == warp_m && tiling.warp_n == warp_n;
  };
  if (has_tap_tables(contraction, bring) && contraction.addresses.taps() > most_open_taps) return false;
  return contraction.addresses.divided == Divided::nothing &&
         tiling.block_k * tensor_element_bytes(contraction) == short_chunk &&
         tiling.stages == (bring == Bring::copied ? 4 : 2) &&
         (has(128, 128, 64, 32) || has(64, 64, 32, 32) || has(32, 32, 16, 16) || has(128, 32, 32, 32));
}

bool tensor_tiles_fit(const TensorTiling& tiling, const Contraction& contraction, const Target& target) {
  return shared_bytes(tiling, contraction) <= target.arch.shared_per_block;
}

bool tensor_registers_suffice(const TensorTiling& tiling, const Contraction& contraction, Bring bring,
                              const Target& target) {
  return tensor_registers(tiling, contraction, bring, target.arch) <=
         std::min(target.arch.registers_per_thread, registers_with(tiling.warps(), target.arch));
}

}  // namespace kiln::descriptor
