#include <algorithm>

#include "attention/tensor.h"
#include "descriptor/prelude_and_launch.h"

namespace kiln {
namespace attention_backward_tensor_descriptor {
namespace {

using descriptor::AttentionLayer;
using descriptor::fragments_of;
using descriptor::half_tile_bytes;
using Shape = descriptor::AttentionTensorShape;

// Two stages of the other rows, each with two numbers of a query, and the block's own rows.
int64_t memory_bytes(const Shape& shape, const AttentionLayer& layer) {
  const int64_t own = shape.keep != 0 ? 1 : shape.block_m();
  return 2 * (half_tile_bytes(shape.block_n, layer.depth()) + half_tile_bytes(shape.block_n, layer.width()) +
              int64_t{shape.block_n} * 8) +
         half_tile_bytes(own, layer.depth()) + half_tile_bytes(own, layer.width());
}

// Own rows, two kinds of scores and sums of a thread, and the rest.
int64_t registers(const Shape& shape, const AttentionLayer& layer, int64_t sums) {
  const int64_t own = shape.keep != 0 ? 4 * (fragments_of(layer.depth()) + fragments_of(layer.width())) : 0;
  return shape.rows / 16 * (own + shape.block_n + 8 * sums + 8) + 44;
}
int64_t sums_of_keys(const AttentionLayer& layer) {
  return fragments_of(layer.depth()) + fragments_of(layer.width());
}

bool has_open_kernel(const Shape& shape, const AttentionLayer&, const Target&) {
  return shape.warps == 4 && shape.rows == 16 && shape.block_n == 32 && shape.keep == 0;
}

Program program(const Shape& shape, const AttentionLayer& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::attention_prelude(layer);
  descriptor::add_attention_tensor(prelude, shape, layer, {"q", "k", "v", "dy"}, memory_bytes(shape, layer));
  prelude.flag("WITH_KEYS", layer.has_gradients_of_keys());
  return descriptor::gradient_program(layer, emit.source(prelude), "attention_backward_tensor", shape.threads(),
                                      shape.block_m(), memory_bytes(shape, layer));
}

Estimate predict(const Shape& shape, const AttentionLayer& layer, const Target& target, const DeviceFigures& device) {
  const auto depth = static_cast<double>(fragments_of(layer.depth()) * 16);
  const auto width = static_cast<double>(fragments_of(layer.width()) * 16);
  const auto of = [&](int64_t rows, double weighted, int64_t sums) {
    const Count blocks = descriptor::attention_blocks(layer, rows, shape.block_m());
    return descriptor::attention_tensor_estimate(shape, layer,
                                                 static_cast<double>(blocks.fixed + blocks.per_n * layer.images()),
                                                 {.of_scores = depth + width,
                                                  .weighted = weighted,
                                                  .loaded = static_cast<double>(layer.depth() + layer.width()),
                                                  .instructions = 10,
                                                  .registers = registers(shape, layer, sums),
                                                  .memory_bytes = memory_bytes(shape, layer)},
                                                 target, device);
  };
  Estimate estimate = of(layer.rows(), depth, fragments_of(layer.depth()));
  if (layer.has_gradients_of_keys()) {
    estimate.seconds += of(layer.keys(), depth + width, sums_of_keys(layer)).seconds;
  }
  return estimate;
}

}  // namespace
}  // namespace attention_backward_tensor_descriptor

Algorithm attention_backward_tensor() {
  using namespace attention_backward_tensor_descriptor;
  return describe<Shape, AttentionLayer>("attention_backward_tensor", "attention_backward",
                                         "attention/attention_backward_tensor.cu")
      .param("WARPS", &Shape::warps, {4, 8, 2, 1})
      .param("WARP_ROWS", &Shape::rows, {16, 32})
      .param("BLOCK_N", &Shape::block_n, {64, 32})
      .param("KEEP", &Shape::keep, {0, 1})
      .applies([](const AttentionLayer& layer, const Target& target) {
        return descriptor::refuse_on_tensor_cores(layer, target, {"q", "k", "v", "dy"});
      })
      .rule("tiles fit shared memory",
            [](const Shape& shape, const AttentionLayer& layer, const Target& target) {
              return memory_bytes(shape, layer) <= target.arch.shared_per_block;
            })
      .rule("registers hold scores and sums",
            [](const Shape& shape, const AttentionLayer& layer, const Target&) {
              return registers(shape, layer, sums_of_keys(layer)) <= 255;
            })
      .pruning("all warps and columns have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 const int64_t most = std::max(layer.rows(), layer.keys());
                 return descriptor::attention_tensor_has_work(shape, most, most);
               })
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
