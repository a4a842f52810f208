#include "attention/block.h"
#include "descriptor/prelude_and_launch.h"

namespace kiln {
namespace attention_block_descriptor {
namespace {

using descriptor::AttentionLayer;
using descriptor::KeyParts;

struct Shape : descriptor::AttentionBlockShape {
  int parts;  // of the keys, for each a block of its own
};

KeyParts parts_of(const Shape& shape) {
  return {shape.parts, shape.block_n};
}

int64_t memory_bytes(const Shape& shape, const AttentionLayer& layer) {
  return descriptor::float_tile_bytes(shape.block_m, layer.depth()) +
         descriptor::float_tile_bytes(shape.block_n, layer.depth()) +
         descriptor::float_tile_bytes(shape.block_n, layer.width()) +
         descriptor::float_tile_bytes(shape.block_m, shape.block_n);
}

bool has_open_kernel(const Shape& shape, const AttentionLayer&, const Target&) {
  if (shape.block_m == 64) return shape.block_n == 32 && shape.parts == 1;
  return shape.block_m == 16 && shape.block_n == 64 && (shape.parts == 1 || shape.parts == 16);
}

Program program(const Shape& shape, const AttentionLayer& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::attention_prelude(layer);
  descriptor::add_attention_block(prelude, shape, layer, memory_bytes(shape, layer));
  Launch launch =
      descriptor::attention_launch(layer, "attention_block", static_cast<int>(descriptor::threads_of(shape)));
  launch.dynamic_shared_bytes = static_cast<unsigned>(memory_bytes(shape, layer));
  return descriptor::parts_program(layer, prelude, emit, launch, parts_of(shape), shape.block_m);
}

Estimate predict(const Shape& shape, const AttentionLayer& layer, const Target& target, const DeviceFigures& device) {
  const Count blocks = descriptor::attention_blocks(layer, layer.rows(), shape.block_m);
  const auto count = static_cast<double>((blocks.fixed + blocks.per_n * layer.images()) * shape.parts);
  const auto depth = static_cast<double>(layer.depth()), width = static_cast<double>(layer.width());
  Estimate estimate = descriptor::grid_estimate(
      descriptor::attention_block_work(shape, layer, count,
                                       {depth, width, depth + width, descriptor::row_sums(shape, layer.width())},
                                       memory_bytes(shape, layer)),
      target.arch, device);
  estimate.seconds += descriptor::join_seconds(layer, parts_of(shape), device);
  return estimate;
}

}  // namespace
}  // namespace attention_block_descriptor

Algorithm attention_block() {
  using namespace attention_block_descriptor;
  return describe<Shape, AttentionLayer>("attention_block", "attention_forward", "attention/attention_block.cu")
      .param("BLOCK_M", &Shape::block_m, {64, 32, 16})
      .param("BLOCK_N", &Shape::block_n, {64, 32})
      .param("PARTS", &Shape::parts, {1, 4, 16, 2, 8, 32})
      .rule("a block has whole warps", [](const Shape& shape, const AttentionLayer&,
                                          const Target&) { return descriptor::threads_of(shape) % 32 == 0; })
      .rule("tiles fit shared memory",
            [](const Shape& shape, const AttentionLayer& layer, const Target& target) {
              return memory_bytes(shape, layer) <= target.arch.shared_per_block;
            })
      .rule("a thread's sums are few", [](const Shape& shape, const AttentionLayer& layer,
                                          const Target&) { return descriptor::row_sums(shape, layer.width()) <= 128; })
      .pruning("all rows and columns have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 return descriptor::attention_block_has_work(shape, layer.rows(), layer.keys());
               })
      .pruning("parts of the keys have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 return descriptor::parts_have_work(layer, parts_of(shape), shape.block_m);
               })
      .opens(has_open_kernel)
      .adds([](const Shape& shape, const AttentionLayer& layer, const Target&) {
        return descriptor::order_of_tiles("lanes", layer, shape.block_m, parts_of(shape));
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
