#include "attention/tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "descriptor/numbers.h"
#include "descriptor/rows.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

int run_of(const TensorSpec& spec) {
  return widest_vector(spec, {3}, 8);
}

bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace

int64_t fragments_of(int64_t elements) {
  return ceil_div(elements, 16);
}

int64_t half_tile_bytes(int64_t rows, int64_t elements) {
  return rows * (fragments_of(elements) * 32 + 16);
}

std::optional<std::string> refuse_on_tensor_cores(const AttentionLayer& layer, const Target& target,
                                                  std::initializer_list<std::string_view> factors) {
  if (!target.arch.at_least(8, 0)) return "needs compute capability 8.0";
  std::optional<DType> partner;
  for (const std::string_view name : factors) {
    const TensorSpec& spec = *layer.operand(name);
    if (!is_half(spec.dtype)) return fmt::format("{} is neither f16 nor bf16", name);
    if (partner && *partner != spec.dtype)
      return fmt::format("{} has another type than what it is multiplied by", name);
    partner = partner ? std::nullopt : std::optional(spec.dtype);
    if (run_of(spec) < 2) return fmt::format("elements of {} are not side by side, or not aligned", name);
  }
  return std::nullopt;
}

void add_attention_tensor(Prelude& prelude, const AttentionTensorShape& shape, const AttentionLayer& layer,
                          std::initializer_list<std::string_view> factors, int64_t memory_bytes) {
  prelude.constant("WARPS", shape.warps).constant("WARP_ROWS", shape.rows).constant("BLOCK_N", shape.block_n);
  prelude.flag("KEEP", shape.keep != 0).constant("MEMORY_BYTES", memory_bytes);
  for (const LayerOperand& operand : layer.operands) {
    if (operand.dimensions.back() != 'E') continue;
    const bool is_factor = std::find(factors.begin(), factors.end(), operand.name) != factors.end();
    const int run = operand.spec ? run_of(*operand.spec) : 1;
    prelude.constant(constant_name({operand.name, layer.q}) + "_RUN", is_factor ? run : std::min(run, 2));
  }
}

bool attention_tensor_has_work(const AttentionTensorShape& shape, int64_t rows, int64_t columns) {
  return (shape.block_m() == 16 || shape.block_m() / 2 < rows) && (shape.block_n == 32 || shape.block_n / 2 < columns);
}

Estimate attention_tensor_estimate(const AttentionTensorShape& shape, const AttentionLayer& layer, double blocks,
                                   const AttentionTensorWork& cost, const Target& target, const DeviceFigures& device) {
  GridWork work;
  work.blocks = std::max(1.0, blocks);
  work.dram_bytes = layer.bytes();
  const double pairs = layer.pairs() * cost.repeats / work.blocks;
  const double tiles = pairs / static_cast<double>(shape.block_m() * shape.block_n);
  const double bytes = tiles * shape.block_n * cost.loaded * 2;
  // An instruction of tensor cores multiplies 16 x 8 x 16; one that loads matrices serves two of each 16 rows. A tile
  // takes some instructions of its own, to rescale sums among others.
  const double matrices = pairs * (cost.of_scores + cost.weighted) / 2048, fragments = shape.rows / 16.0;
  const double own_rows = shape.keep != 0 ? 0 : pairs * cost.of_scores / (256.0 * shape.block_n);
  const double loads = matrices / 2 / fragments + own_rows;
  BlockWork& block = work.block;
  block.threads = shape.threads();
  block.registers = static_cast<double>(cost.registers);
  block.shared_bytes = static_cast<double>(cost.memory_bytes);
  block.math = MathClass::tensor_f16;
  block.fma = pairs * (cost.of_scores + cost.weighted) / 32;
  block.instructions = matrices + loads + pairs * cost.instructions / 32 + bytes / 64 +
                       tiles * shape.warps * fragments * (80 + cost.weighted / 2) + shape.warps * 600;
  block.shared_wavefronts = loads * 4 + bytes / 128;
  block.global_sectors = bytes / 32;
  block.l2_bytes = bytes;
  block.stall_clocks = tiles * (150 + 150 * cost.waits);
  block.latency_clocks =
      1500 + tiles * (350 + 350 * cost.waits + block.instructions / std::max(tiles, 1.0) / shape.warps * 4);
  return tensor_estimate(work, target.arch, with_rate_of_l2(device, target.arch));
}

}  // namespace kiln::descriptor
