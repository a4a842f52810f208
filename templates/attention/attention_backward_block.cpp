#include <algorithm>

#include "attention/block.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"

namespace kiln {
namespace attention_backward_block_descriptor {
namespace {

using descriptor::AttentionLayer;
using Shape = descriptor::AttentionBlockShape;

int64_t memory_bytes(const Shape& shape, const AttentionLayer& layer) {
  const int64_t lines = shape.block_m + shape.block_n;
  return descriptor::float_tile_bytes(lines, layer.depth()) + descriptor::float_tile_bytes(lines, layer.width()) +
         descriptor::float_tile_bytes(shape.block_m, shape.block_n);
}

int64_t sums(const Shape& shape, const AttentionLayer& layer) {
  return descriptor::row_sums(shape, layer.depth()) + descriptor::row_sums(shape, layer.width());
}

bool has_open_kernel(const Shape& shape, const AttentionLayer&, const Target&) {
  return shape.block_m == 32 && shape.block_n == 32;
}

Program program(const Shape& shape, const AttentionLayer& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::attention_prelude(layer);
  descriptor::add_attention_block(prelude, shape, layer, memory_bytes(shape, layer));
  prelude.flag("WITH_KEYS", layer.has_gradients_of_keys());
  return descriptor::gradient_program(layer, emit.source(prelude), "attention_backward_block",
                                      static_cast<int>(descriptor::threads_of(shape)), shape.block_m,
                                      memory_bytes(shape, layer));
}

Estimate predict(const Shape& shape, const AttentionLayer& layer, const Target& target, const DeviceFigures& device) {
  const auto depth = static_cast<double>(layer.depth()), width = static_cast<double>(layer.width());
  const auto of = [&](int64_t lines, double weighted, int64_t registers) {
    const Count blocks = descriptor::attention_blocks(layer, lines, shape.block_m);
    return descriptor::grid_estimate(
        descriptor::attention_block_work(
            shape, layer, static_cast<double>(blocks.fixed + blocks.per_n * layer.images()),
            {depth + width, weighted, depth + width, registers}, memory_bytes(shape, layer)),
        target.arch, device);
  };
  Estimate estimate = of(layer.rows(), depth, descriptor::row_sums(shape, layer.depth()));
  if (layer.has_gradients_of_keys()) {
    estimate.seconds += of(layer.keys(), depth + width, sums(shape, layer)).seconds;
  }
  return estimate;
}

}  // namespace
}  // namespace attention_backward_block_descriptor

Algorithm attention_backward_block() {
  using namespace attention_backward_block_descriptor;
  return describe<Shape, AttentionLayer>("attention_backward_block", "attention_backward",
                                         "attention/attention_backward_block.cu")
      .param("BLOCK_M", &Shape::block_m, {32, 64, 16})
      .param("BLOCK_N", &Shape::block_n, {32, 64})
      .rule("a block has whole warps", [](const Shape& shape, const AttentionLayer&,
                                          const Target&) { return descriptor::threads_of(shape) % 32 == 0; })
      .rule("tiles fit shared memory",
            [](const Shape& shape, const AttentionLayer& layer, const Target& target) {
              return memory_bytes(shape, layer) <= target.arch.shared_per_block;
            })
      .rule("a thread's sums are few",
            [](const Shape& shape, const AttentionLayer& layer, const Target&) { return sums(shape, layer) <= 160; })
      .pruning("all rows and columns have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 return descriptor::attention_block_has_work(shape, std::max(layer.queries(), layer.keys()),
                                                             std::max(layer.queries(), layer.keys()));
               })
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
