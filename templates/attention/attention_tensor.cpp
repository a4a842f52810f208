#include "attention/tensor.h"
#include "descriptor/prelude_and_launch.h"

namespace kiln {
namespace attention_tensor_descriptor {
namespace {

using descriptor::AttentionLayer;
using descriptor::fragments_of;
using descriptor::half_tile_bytes;
using descriptor::KeyParts;

struct Shape : descriptor::AttentionTensorShape {
  int parts;  // of the keys, for each a block of its own
};

KeyParts parts_of(const Shape& shape) {
  return {shape.parts, shape.block_n};
}

int64_t memory_bytes(const Shape& shape, const AttentionLayer& layer) {
  return half_tile_bytes(shape.block_n, layer.depth()) + half_tile_bytes(shape.block_n, layer.width()) +
         half_tile_bytes(shape.keep != 0 ? 1 : shape.block_m(), layer.depth());
}

// Queries, scores and sums of a thread, and the rest.
int64_t registers(const Shape& shape, const AttentionLayer& layer) {
  const int64_t queries = shape.keep != 0 ? 4 * fragments_of(layer.depth()) : 0;
  return shape.rows / 16 * (queries + shape.block_n / 2 + 8 * fragments_of(layer.width()) + 8) + 44;
}

// Few kernels for a class of layers: of many rows, and of a step of a decoder.
bool has_open_kernel(const Shape& shape, const AttentionLayer& layer, const Target&) {
  const bool is_wide = layer.depth() > 128 || layer.width() > 128;
  const bool is_usual = shape.warps == 4 && shape.parts == 1;
  return (is_usual || (shape.warps == 1 && (shape.parts == 1 || shape.parts == 16))) && shape.rows == 16 &&
         shape.block_n == (is_wide ? 32 : 64) && shape.keep == (is_wide ? 0 : 1);
}

Program program(const Shape& shape, const AttentionLayer& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::attention_prelude(layer);
  descriptor::add_attention_tensor(prelude, shape, layer, {"q", "k", "v"}, memory_bytes(shape, layer));
  Launch launch = descriptor::attention_launch(layer, "attention_tensor", shape.threads());
  launch.dynamic_shared_bytes = static_cast<unsigned>(memory_bytes(shape, layer));
  return descriptor::parts_program(layer, prelude, emit, launch, parts_of(shape), shape.block_m());
}

Estimate predict(const Shape& shape, const AttentionLayer& layer, const Target& target, const DeviceFigures& device) {
  const auto depth = static_cast<double>(fragments_of(layer.depth()) * 16);
  const auto width = static_cast<double>(fragments_of(layer.width()) * 16);
  const Count blocks = descriptor::attention_blocks(layer, layer.rows(), shape.block_m());
  const auto count = static_cast<double>((blocks.fixed + blocks.per_n * layer.images()) * shape.parts);
  Estimate estimate =
      descriptor::attention_tensor_estimate(shape, layer, count,
                                            {.of_scores = depth,
                                             .weighted = width,
                                             .loaded = static_cast<double>(layer.depth() + layer.width()),
                                             .instructions = 8,
                                             .registers = registers(shape, layer),
                                             .memory_bytes = memory_bytes(shape, layer)},
                                            target, device);
  estimate.seconds += descriptor::join_seconds(layer, parts_of(shape), device);
  return estimate;
}

}  // namespace
}  // namespace attention_tensor_descriptor

Algorithm attention_tensor() {
  using namespace attention_tensor_descriptor;
  return describe<Shape, AttentionLayer>("attention_tensor", "attention_forward", "attention/attention_tensor.cu")
      .param("WARPS", &Shape::warps, {4, 8, 2, 1})
      .param("WARP_ROWS", &Shape::rows, {16, 32})
      .param("BLOCK_N", &Shape::block_n, {64, 128, 32})
      .param("KEEP", &Shape::keep, {1, 0})
      .param("PARTS", &Shape::parts, {1, 4, 16, 2, 8, 32})
      .applies([](const AttentionLayer& layer, const Target& target) {
        const std::optional<std::string> refusal = descriptor::refuse_on_tensor_cores(layer, target, {"q", "k"});
        return refusal ? refusal : descriptor::refuse_on_tensor_cores(layer, target, {"v"});
      })
      .rule("tiles fit shared memory",
            [](const Shape& shape, const AttentionLayer& layer, const Target& target) {
              return memory_bytes(shape, layer) <= target.arch.shared_per_block;
            })
      .rule("registers hold queries, scores and sums", [](const Shape& shape, const AttentionLayer& layer,
                                                          const Target&) { return registers(shape, layer) <= 255; })
      .pruning("all warps and columns have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 return descriptor::attention_tensor_has_work(shape, layer.rows(), layer.keys());
               })
      .pruning("parts of the keys have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 return descriptor::parts_have_work(layer, parts_of(shape), shape.block_m());
               })
      .opens(has_open_kernel)
      .adds([](const Shape& shape, const AttentionLayer& layer, const Target&) {
        return descriptor::order_of_tiles("tensor cores", layer, shape.block_m(), parts_of(shape));
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
