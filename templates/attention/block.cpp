#include "attention/block.h"

#include <algorithm>
#include <string>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/rows.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {

int64_t float_tile_bytes(int64_t rows, int64_t columns) {
  return rows * (ceil_div(columns, 4) * 4 + 4) * 4;
}

int64_t row_sums(const AttentionBlockShape& shape, int64_t columns) {
  const int64_t lanes = static_cast<double>(shape.block_n) / 4;
  return 4 * ceil_div(ceil_div(columns, 4), lanes) * 4;
}

void add_attention_block(Prelude& prelude, const AttentionBlockShape& shape, const AttentionLayer& layer,
                         int64_t memory_bytes) {
  prelude.constant("BLOCK_M", shape.block_m).constant("BLOCK_N", shape.block_n);
  prelude.constant("THREADS", threads_of(shape)).constant("MEMORY_BYTES", memory_bytes);
  for (const LayerOperand& operand : layer.operands) {
    if (operand.dimensions.back() != 'E') continue;
    const int64_t run = operand.spec ? widest_vector(*operand.spec, {3}, 4) : 1;
    prelude.constant(constant_name({operand.name, layer.q}) + "_RUN", run);
  }
}

bool attention_block_has_work(const AttentionBlockShape& shape, int64_t rows, int64_t columns) {
  return (shape.block_m == 16 || shape.block_m / 2 < rows) && (shape.block_n == 32 || shape.block_n / 2 < columns);
}

GridWork attention_block_work(const AttentionBlockShape& shape, const AttentionLayer& layer, double blocks,
                              const AttentionProducts& products, int64_t memory_bytes) {
  const double pairs = layer.pairs() * products.repeats / std::max(blocks, 1.0),
               lanes = static_cast<double>(shape.block_n) / 4;
  const double tiles = pairs / (shape.block_m * shape.block_n);
  const double bytes = tiles * shape.block_n * products.loaded * size_of(layer.k.dtype);
  const double scores = pairs * products.of_scores / 32, weighted = pairs * products.weighted / 32;
  GridWork work;
  work.blocks = blocks;
  work.dram_bytes = layer.bytes();
  BlockWork& block = work.block;
  block.threads = static_cast<double>(threads_of(shape));
  block.registers = 80 + static_cast<double>(products.registers);
  block.shared_bytes = static_cast<double>(memory_bytes);
  block.fma = scores + weighted;
  // An eighth of an access to shared memory a multiply-add; masks, maxima and exponentials of a pair.
  block.instructions = block.fma * 1.15 + pairs * 1.2 + 40 * block.threads / 32;
  // Lanes read a vector each of the columns; rows are the same for LANES of them.
  const double columns = std::max(1.0, lanes / 8);
  block.shared_wavefronts = (scores + weighted) * (4 + 4 * columns) / 64;
  block.global_sectors = bytes / 32;
  block.l2_bytes = bytes;
  block.stall_clocks = tiles * (350 + 350 * products.waits);  // loads and barriers
  block.latency_clocks =
      2000 + tiles * (350 + 350 * products.waits + (scores + weighted) / tiles * 32 / block.threads * 5);
  return work;
}

}  // namespace kiln::descriptor
