#include "contraction/tensor_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>

namespace kiln::descriptor {
namespace {

constexpr double sector = 32, line = 128, piece = 512;  // bytes: of L2, of L1, of an access of 16 bytes a lane

// Clocks from a load's start to its end where L2 has the data, and seconds more where device memory has: 262 and 466
// clocks on an A100 (Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture), 276 and 631 on an L40
// (gpu-benches).
constexpr double l2_clocks = 270, dram_seconds = 0.143e-6;

// Clocks from one product to the next that adds to the same sums: m16n8k16 takes 33 on Hopper (Luo et al.), 25 on an
// A100 (Sun et al., Dissecting Tensor Cores via Microbenchmarks).
constexpr double product_latency = 33;

// Numbers without a source were chosen with the machine-code clock's times of some layers on an A100 and an L40S in
// sight (docs/tuning-method.md).
constexpr double barrier_clocks = 80;   // of a chunk, with its first fragments: chosen by an H100's and an H200's times
constexpr double begin_clocks = 1300;   // of a block: code, addresses of its copies
constexpr double store_clocks = 160;    // of a warp for a run of each lane: sums through shared memory, the epilogue
constexpr double next_tile = 100;       // instructions of a warp for the addresses of a further tile's copies
constexpr double units_in_turn = 5;     // exponents: how little units that are equally busy hinder each other,
constexpr double latency_beside = 5.5;  // and how little a latency that is as long as they are busy
constexpr double of_own_transfer = 1.2;  // of a chunk's passage through L2: what its block waits for
constexpr double of_l1 = 0.2;            // part of L1 that neighbouring taps can count on
constexpr double a_warp_alone = 0.1;     // part of its time in which a scheduler's only warp keeps no unit busy

// A maximum with a smooth passage.
double longest(std::initializer_list<double> clocks, double exponent) {
  const double most = std::max(clocks);
  if (most <= 0) return 0;
  double sum = 0;
  for (const double each : clocks) sum += std::pow(each / most, exponent);
  return most * std::pow(sum, 1 / exponent);
}

// Bytes of the sectors that runs of `bytes` side by side touch, for each byte. Where no more than 16 bytes of alignment
// are promised, runs begin within a sector.
double spread(double bytes, int alignment) {
  return (std::ceil(bytes / sector) + (alignment < sector ? 1 : 0)) * sector / bytes;
}

// Bytes of L1 beside the shared memory of `blocks` blocks (CUDA C++ Programming Guide, compute capabilities: unified
// data cache, and the sizes that shared memory can have).
double l1_beside(double shared_bytes, double blocks, const Arch& arch) {
  constexpr double kib = 1024;
  const double all = kib * (arch.major == 7                      ? 96
                            : arch.major == 8 && arch.minor == 0 ? 192
                            : arch.shared_per_sm > 200 * kib     ? 256
                                                                 : 128);
  double taken = arch.shared_per_sm;
  for (const double size : {228.0, 196.0, 164.0, 132.0, 100.0, 64.0, 32.0, 16.0, 8.0}) {
    if (size * kib >= blocks * (shared_bytes + kib)) taken = std::min(taken, size * kib);
  }
  return all - taken;
}

// Different elements of x that the windows of so many neighbours along an axis meet.
double met(const WindowAxis& axis, double outputs) {
  const double apart = std::abs(static_cast<double>(axis.stride));
  return std::min({outputs * static_cast<double>(axis.window),
                   (outputs - 1) * apart + static_cast<double>(axis.reach()),
                   std::max(static_cast<double>(axis.extent), outputs)});
}

// Part of what loads `bytes` apart ask for twice that L1 still has.
double kept(double bytes, double l1) {
  const double part = std::min(1.0, of_l1 * l1 / bytes);
  return part * part;
}

// Part of the bytes of a that L1 lacks. Taps are inside of channels, so neighbouring taps meet in what L1 keeps: all
// pixels under the block's windows, or else those of one row of taps.
double lacking(const TensorTiling& tiling, const Contraction& contraction, double l1) {
  const SpatialAxes& axes = contraction.addresses;
  if (contraction.addresses.images_are_channels) {  // rows of the block under several taps read the same channels
    const double taps = std::max(1.0, tiling.block_m / static_cast<double>(contraction.n()));
    return (tiling.block_k + taps - 1) / (taps * tiling.block_k);
  }
  if (axes.taps() <= 1) return 1;
  const auto within = [](double count, int64_t most) { return std::clamp(count, 1.0, static_cast<double>(most)); };
  const double outputs = tiling.block_m;
  const auto q = static_cast<double>(axes.columns.outputs), p = static_cast<double>(axes.rows.outputs);
  const double columns = within(outputs, axes.columns.outputs), rows = within(outputs / q, axes.rows.outputs);
  const double planes = within(outputs / (q * p), axes.planes.outputs);
  const double images = std::max(1.0, outputs / static_cast<double>(axes.pixels_per_image()));
  const double of_row = met(axes.columns, columns) * rows * planes * images;
  const double all = met(axes.columns, columns) * met(axes.rows, rows) * met(axes.planes, planes) * images;
  const bool down = contraction.a_along() == Along::depth;
  const double bytes = size_of(contraction.a_type()), of_chunk = tiling.block_k * bytes;
  const double of_channels = static_cast<double>(contraction.period()) * bytes;
  // Bytes of L1 for a pixel: lines of the chunk's channels; or elements of the channels that share the chunk's taps.
  const double of_pixel = down ? std::max(of_chunk, std::min(line, of_channels))
                               : bytes * (1 + tiling.block_k / static_cast<double>(axes.taps()));
  const double lacks_all = std::min(1.0, all / (static_cast<double>(axes.taps()) * outputs));
  const double lacks_rows = std::min(1.0, of_row / (static_cast<double>(axes.columns.window) * outputs));
  const double keeps_all = kept(all * of_pixel, l1), keeps_row = kept(of_row * of_pixel, l1);
  return keeps_all * lacks_all + (1 - keeps_all) * (keeps_row * lacks_rows + 1 - keeps_row);
}

// Work of a warp for a chunk.
struct TensorStep {
  MathClass math;
  double products;        // instructions
  double beside;          // instructions that convert fragments, or convert and add what products give
  double multiply_adds;   // of a product
  double clocks;          // for which an instruction takes its scheduler's tensor core
  double fragment_loads;  // instructions
  double fragment_bytes;  // from shared memory
};

TensorStep tensor_step(const TensorTiling& tiling, const Contraction& contraction, const Arch& arch,
                       const Calibration& reached) {
  const double bytes = tensor_element_bytes(contraction), depth = 32 / bytes, steps = tiling.block_k / depth;
  const bool in_integers = bytes == 1 && !is_floating(contraction.a_type());
  const bool in_fp8 = bytes == 1 && !in_integers && tensor_cores_take_fp8(arch);
  const bool unpacks = bytes == 1 && !in_integers && !in_fp8;
  // Loads of a warp and chunk: four where ldmatrix would take one, if it cannot turn the elements.
  const auto loads = [&](bool down) { return down || bytes == 2 ? 1 : 4; };
  TensorStep step;
  step.math = bytes == 4             ? MathClass::tensor_tf32
              : in_integers          ? MathClass::tensor_int8
              : in_fp8               ? MathClass::tensor_fp8
              : contraction.f16_sums ? MathClass::tensor_f16_sums
                                     : MathClass::tensor_f16;
  const double halves = unpacks ? 2 : 1;
  step.products = tiling.warp_m / 16.0 * tiling.warp_n / 8.0 * steps * halves;
  step.multiply_adds = 16 * 8 * depth / halves;
  // A fragment of fp8 becomes 8 registers of f16, by an instruction each from 8.9 on.
  const double conversion = arch.at_least(8, 9) ? 1 : 7;
  step.beside = unpacks ? (tiling.warp_m + tiling.warp_n) / 16.0 * 8 * steps * conversion
                : in_fp8 && !contraction.arithmetic.fast ? 4 * step.products
                : contraction.f16_sums                   ? 8 * step.products
                                                         : 0;
  step.clocks = step.multiply_adds * 4 / reached_products(arch, step.math, reached);
  step.fragment_loads = (tiling.warp_m * loads(contraction.a_along() == Along::depth) +
                         tiling.warp_n * loads(contraction.b_along() == Along::depth)) /
                        16.0 * steps;
  step.fragment_bytes = (tiling.warp_m + tiling.warp_n) * 32 * steps;
  return step;
}

// How the bytes of an operand's tile lie in memory.
struct Lines {
  double spread;    // bytes of the sectors that hold them, for each of them
  double conflict;  // passes of the banks that they are read from, for each that 128 bytes side by side take
};

// A line of the tile that runs along the depth is a row or column; others run along these.
Lines lines_of(bool down, double down_bytes, double apart_bytes, double across_bytes, int alignment) {
  if (!down) return {spread(across_bytes, alignment), 1};
  const bool side_by_side = apart_bytes == down_bytes;
  const bool same_banks = !side_by_side && std::fmod(apart_bytes, line) == 0;
  return {spread(side_by_side ? piece : down_bytes, alignment), same_banks ? std::max(1.0, line / down_bytes) : 1};
}
Lines lines_of_a(const TensorTiling& tiling, const Contraction& contraction) {
  const ConvolutionAddresses& addresses = contraction.addresses;
  const double bytes = size_of(contraction.a_type());
  const auto pitch = static_cast<double>(addresses.x.strides[dimension::column] * addresses.columns.stride);
  const int64_t across = addresses.images_are_channels ? contraction.n() : contraction.rows_per_n();
  return lines_of(contraction.a_along() == Along::depth, tiling.block_k * bytes, pitch * bytes,
                  bytes * std::min(static_cast<double>(tiling.block_m), static_cast<double>(across)),
                  addresses.x.alignment);
}
Lines lines_of_b(const TensorTiling& tiling, const Contraction& contraction) {
  const ConvolutionAddresses& addresses = contraction.addresses;
  const double bytes = size_of(contraction.b_type());
  const auto pitch = static_cast<double>(addresses.w.strides[dimension::batch]);
  return lines_of(contraction.b_along() == Along::depth, tiling.block_k * bytes, pitch * bytes,
                  bytes * std::min(static_cast<double>(tiling.block_n), static_cast<double>(contraction.columns())),
                  addresses.w.alignment);
}

// A block of a kernel, and what it does for one chunk.
class TensorBlock {
 public:
  TensorBlock(const TensorTiling& tiling, const Contraction& contraction, Bring bring, const Arch& arch,
              const Calibration& reached, std::optional<double> a_elements)
      : tiling_(tiling),
        contraction_(contraction),
        copied_(bring == Bring::copied),
        access_(tensor_access(contraction, bring)),
        step_(tensor_step(tiling, contraction, arch, reached)),
        bytes_(tensor_element_bytes(contraction)),
        a_bytes_(size_of(contraction.a_type())),
        b_bytes_(size_of(contraction.b_type())),
        a_is_shared_(a_elements.has_value()),
        a_elements_(a_elements.value_or(tiling.block_m * tiling.block_k)),
        b_elements_(tiling.block_n * tiling.block_k / static_cast<double>(tiling.tiles)),
        a_lines_(lines_of_a(tiling, contraction)),
        b_lines_(lines_of_b(tiling, contraction)),
        inside_(contraction.multiplies() ? inside_share(contraction.addresses) : 1) {}

  // Instructions of a warp that bring the operands: a copy, its address and whether it exists; or a load, what becomes
  // of it, and a store. The gradient by the filter, and a halo, divide the number of a position for each copy of x.
  double moves() const {
    const double a_copy = contraction_.addresses.images_are_channels || a_is_shared_ ? 14 : 3;
    const double a_load = contraction_.a_is_gathered() ? 12 : 8;
    const double of_a = a_elements_ / access_.a_run * (copied_ ? a_copy : a_load);
    constexpr double of_conversion = 5;  // of an element
    const double converted = (a_bytes_ < bytes_ ? a_elements_ : 0) + (b_bytes_ < bytes_ ? b_elements_ : 0);
    const double entered = a_elements_ * contraction_.prologue_instructions;
    return (of_a + b_elements_ / access_.b_run * (copied_ ? 2 : 6) + converted * of_conversion + entered) / 32;
  }
  double instructions() const {
    return tiling_.warps() * (step_.products + step_.beside + step_.fragment_loads + 24) + moves();
  }

  // Passes in which warps store what they have loaded.
  double stash() const {
    const double conflicts = 1 + 1.0 / std::min(access_.a_run, access_.b_run);
    return copied_ ? 0 : (a_elements_ + b_elements_) * bytes_ / line * conflicts;
  }
  // Passes of shared memory, and of L1, which is the same memory. An access of a warp takes one at least.
  double passes() const {
    const auto brought = [&](double elements, double bytes, int run) {
      return elements * bytes / line * std::max(1.0, 4 / (run * bytes));
    };
    return tiling_.warps() * step_.fragment_bytes / line +
           brought(a_elements_ * inside_, a_bytes_, access_.a_run) * a_lines_.conflict +
           brought(b_elements_, b_bytes_, access_.b_run) * (copied_ ? 1 : b_lines_.conflict) + stash();
  }

  // Bytes from L2, beside so many of L1.
  double l2_bytes(double l1) const {
    // The sector in which one chunk of a line ends is the first of the next chunk. Copies of b pass L1 by.
    const auto lines_in_l1 = [&](int count) {
      return kept(count * line * static_cast<double>(contraction_.a_repeats()), l1);
    };
    const double a_spread = 1 + (a_lines_.spread - 1) * (1 - lines_in_l1(tiling_.block_m));
    const double b_spread = 1 + (b_lines_.spread - 1) * (1 - (copied_ ? 0 : lines_in_l1(tiling_.block_n)));
    const double lacks = a_is_shared_ ? 1 : lacking(tiling_, contraction_, l1);
    return a_elements_ * inside_ * a_spread * lacks * a_bytes_ + b_elements_ * b_spread * b_bytes_;
  }

  // Clocks of a block alone, where a load takes so many.
  double clocks(double load) const {
    const double warps = tiling_.warps();
    // A warp does one after the other: steps whose sums wait for one another, its instructions, fragments, a barrier.
    const double alone = tiling_.block_k * bytes_ / 32 * product_latency + instructions() / warps + barrier_clocks;
    const double multiply = std::max({std::ceil(warps / 4) * step_.products * step_.clocks, passes(), alone});
    // Copies run up to stages - 1 chunks ahead, less the step in which a chunk is waited for.
    if (copied_) return std::max(multiply, (load + multiply / 2) / (tiling_.stages - 1));
    // Loads are one ahead. A warp finds their addresses, one instruction after the other, and then all store what they
    // brought between two barriers.
    constexpr double one_after_the_other = 4, barriers = 120;
    return std::max(multiply, load) + one_after_the_other * moves() / warps + stash() + barriers;
  }

  double element(Results results) const {
    return results == Results::parts ? 4 : size_of(contraction_.addresses.y.dtype);
  }
  // Bytes in which a result is put to shared memory and taken from there: rounded, where it depends on its sum alone.
  double passing(Results results) const {
    const bool reads = std::any_of(contraction_.epilogue.begin(), contraction_.epilogue.end(), [](EpilogueStage stage) {
      return stage == EpilogueStage::bias || stage == EpilogueStage::add;
    });
    const bool alone = results == Results::finished && !reads && contraction_.blend.beta == Scale::zero;
    return alone && element(results) == 2 ? 2 : 4;
  }
  // Bytes of the sectors that the block's results touch.
  double stored_bytes(Results results) const {
    constexpr double fragment = 16;  // rows of sums that go through shared memory at a time
    const bool across = contraction_.c_along() == Along::columns;
    const double run =
        across ? std::min<double>(tiling_.warp_n, static_cast<double>(contraction_.columns())) : fragment;
    // A lane stores its run of a part 16 bytes at a time, half of a sector.
    const double touched =
        results == Results::parts ? 2 : spread(run * element(results), contraction_.addresses.y.alignment);
    return outputs() * element(results) * touched;
  }
  double outputs() const { return static_cast<double>(tiling_.block_m) * tiling_.block_n; }
  // Accesses of a lane that store its results.
  double stores() const { return tiling_.warp_m / 16.0 * std::max(1.0, tiling_.warp_n / (2.0 * access_.c_run)); }
  double store_instructions() const { return outputs() / 32 * (2.0 + 12.0 / access_.c_run); }

  const TensorStep& step() const { return step_; }

 private:
  const TensorTiling& tiling_;
  const Contraction& contraction_;
  bool copied_;
  TensorAccess access_;
  TensorStep step_;
  double bytes_, a_bytes_, b_bytes_;  // of an element: in shared memory, and of a and b in memory
  bool a_is_shared_;                  // what comes of a for one chunk serves others too
  double a_elements_, b_elements_;    // that come for a chunk
  Lines a_lines_, b_lines_;
  double inside_;  // part of a that is inside of x
};

}  // namespace

DeviceFigures with_rate_of_l2(const DeviceFigures& device, const Arch& arch) {
  DeviceFigures result = device;
  double& rate = result.calibration.l2_bytes_per_clock;
  if (rate != Calibration{}.l2_bytes_per_clock) return result;  // measured
  // 38 on an H200, 16 on an A40 and an L40 (gpu-benches), 20 on a T4 (Jia et al.). On an A100 gpu-benches has 36,
  // NVIDIA's white paper 47.
  rate = arch.major == 9 || arch.major == 10 ? 38 : arch.major == 7 ? 20 : arch.major == 8 && arch.minor == 0 ? 40 : 16;
  return result;
}

BlockWork tensor_block_work(const TensorTiling& tiling, const Contraction& contraction, Bring bring, const Arch& arch,
                            const DeviceFigures& device, double of_tile, double blocks, const TensorTraffic& traffic) {
  const TensorBlock block(tiling, contraction, bring, arch, device.calibration, traffic.a_elements);
  const double warps = tiling.warps(), tiles = tiling.tiles, chunks = tiles * of_tile;
  BlockWork work;
  work.threads = tiling.threads();
  work.registers = std::min(arch.registers_per_thread, tensor_registers(tiling, contraction, bring, arch));
  work.shared_bytes = static_cast<double>(shared_bytes(tiling, contraction));
  work.math = block.step().math;
  work.fma = chunks * warps * block.step().multiply_adds * block.step().products / 32;
  work.instructions =
      chunks * block.instructions() + warps * (400 + (tiles - 1) * next_tile) + tiles * block.store_instructions();
  work.shared_wavefronts =
      chunks * block.passes() +
      tiles * block.outputs() * (2 * block.passing(traffic.results) + block.element(traffic.results)) / line;

  const double share = std::max(1.0, std::ceil(blocks / std::max(device.sms, 1)));
  const double resident = std::min(share, resident_blocks({work.threads, work.registers, work.shared_bytes}, arch));
  const double chunk_bytes = block.l2_bytes(l1_beside(work.shared_bytes, resident, arch) / resident);
  work.l2_bytes = chunks * chunk_bytes + tiles * block.stored_bytes(traffic.results);

  // A chunk waits for device memory if some line of it does.
  const double lines = tiling.block_m + tiling.block_n, all_bytes = std::max(1.0, blocks * chunks * chunk_bytes);
  const double waits = 1 - std::exp(-(contraction.a_bytes() + contraction.b_bytes()) / all_bytes * lines);
  const double load = l2_clocks + waits * dram_seconds * device.clock_hz +
                      of_own_transfer * chunk_bytes / with_rate_of_l2(device, arch).calibration.l2_bytes_per_clock;
  const double store = block.stores() * store_clocks;
  work.stall_clocks = begin_clocks + load + store;
  work.latency_clocks = work.stall_clocks + chunks * block.clocks(load) + (tiles - 1) * (store + next_tile);
  return work;
}

Estimate tensor_estimate(const GridWork& work, const Arch& arch, const DeviceFigures& given) {
  const DeviceFigures device = with_rate_of_l2(given, arch);
  const BlockWork& block = work.block;
  const Calibration& reached = device.calibration;
  const double sms = std::max(device.sms, 1);
  const double share = std::max(1.0, std::ceil(work.blocks / sms));  // blocks of the busiest SM
  const double resident = std::min(resident_blocks({block.threads, block.registers, block.shared_bytes}, arch), share);
  const double rounds = std::floor(share / resident), rest = share - rounds * resident;

  // Each SM has its share of the device memory's rate: so the machine-code clock takes it.
  const double peak = device.dram_bytes_per_second * reached.copy_efficiency;
  const double of_block = work.dram_bytes / std::max(1.0, work.blocks) / (peak / sms);  // seconds
  const double memory = share * of_block, later = work.extra_dram_bytes / peak;

  const double tensor = block.fma * 32 / reached_products(arch, block.math, reached);
  const double shared = block.shared_wavefronts / reached.shared_efficiency;
  const double l2 = block.l2_bytes / reached.l2_bytes_per_clock;
  // Schedulers have tensor cores and issue slots of their own: the one with the most warps is done last.
  const double of_scheduler = resident * std::ceil(block.threads / 32) / 4;
  const double uneven = (std::ceil(of_scheduler) + a_warp_alone) / of_scheduler;
  const double busy = longest(
      {tensor * uneven, block.instructions / 4 * uneven, shared, l2, of_block * device.clock_hz}, units_in_turn);

  // Blocks beside each other hide what a block waits for before and after its chunks, but for the first ones.
  const double chunks = block.latency_clocks - block.stall_clocks, exposed = block.stall_clocks / resident;
  const double round = longest({resident * busy, chunks}, latency_beside);
  double clocks = block.stall_clocks + rounds * round + (rounds - 1) * exposed;
  // The last blocks begin when one before them ends: at once, or, where some have less to do, earlier.
  if (rest > 0) clocks += std::max(round * rest / resident, chunks / work.heaviest) + exposed;
  // An SM that gets one of the heaviest blocks is done later, the more so the fewer it has.
  clocks = std::max(clocks * (1 + (work.heaviest - 1) / share), work.longest_clocks);

  Estimate estimate;
  estimate.math = share * tensor / device.clock_hz;
  estimate.on_chip = share * std::max(shared, l2) / device.clock_hz;
  estimate.memory = memory + later;
  estimate.overhead = work.launches * reached.launch_seconds;
  estimate.seconds = std::max(clocks / device.clock_hz, memory) + later + estimate.overhead;
  return estimate;
}

}  // namespace kiln::descriptor
