#include "attention/wide_backward.h"

#include <algorithm>

#include "descriptor/prelude_and_launch.h"

namespace kiln {
namespace attention_backward_wide_descriptor {
namespace {

using descriptor::AttentionLayer;
using descriptor::AttentionUnits;
using Shape = descriptor::AttentionWideShape;

// Slices of the gradients of values, and of keys.
int64_t value_slices(const Shape& shape, const AttentionLayer& layer) {
  return layer.operand("dv") ? descriptor::slices_of(shape, layer.width()) : 0;
}
int64_t key_slices(const Shape& shape, const AttentionLayer& layer) {
  return layer.operand("dk") ? descriptor::slices_of(shape, layer.depth()) : 0;
}

bool has_open_kernel(AttentionUnits units, const Shape& shape) {
  return shape.block_m == 64 && shape.block_n == (units == AttentionUnits::lanes ? 32 : 64) && shape.slice == 128;
}

Program program(AttentionUnits units, const Shape& shape, const AttentionLayer& layer, const Emitter& emit) {
  Prelude prelude = descriptor::attention_prelude(layer);
  descriptor::add_attention_wide(prelude, units, shape, layer, {"q", "k", "v", "dy"});
  prelude.flag("WITH_KEYS", layer.has_gradients_of_keys());
  return descriptor::gradient_program(
      layer, emit.source(prelude), "attention_backward_wide", static_cast<int>(descriptor::threads_of(units, shape)),
      shape.block_m, descriptor::memory_bytes_of(units, shape),
      {descriptor::slices_of(shape, layer.depth()), value_slices(shape, layer) + key_slices(shape, layer)});
}

Estimate predict(AttentionUnits units, const Shape& shape, const AttentionLayer& layer, const Target& target,
                 const DeviceFigures& device) {
  const auto depth = static_cast<double>(layer.depth()), width = static_cast<double>(layer.width());
  const auto of = [&](int64_t lines, int64_t slices, double of_scores) {
    if (slices == 0) return Estimate{};
    const Count blocks = descriptor::attention_blocks(layer, lines, shape.block_m);
    const auto repeats = static_cast<double>(slices);
    const double count = static_cast<double>(blocks.fixed + blocks.per_n * layer.images()) * repeats;
    return descriptor::attention_wide_estimate(units, shape, layer, {count, repeats, of_scores}, target, device);
  };
  Estimate estimate = of(layer.rows(), descriptor::slices_of(shape, layer.depth()), depth + width);
  // Both are in one launch: blocks of values have no gradients of scores.
  estimate.seconds += of(layer.keys(), key_slices(shape, layer), depth + width).seconds +
                      of(layer.keys(), value_slices(shape, layer), depth).seconds;
  return estimate;
}

}  // namespace
}  // namespace attention_backward_wide_descriptor

Algorithm describe_attention_backward_wide(descriptor::AttentionUnits units, const char* name, const char* path) {
  using namespace attention_backward_wide_descriptor;
  return describe<Shape, AttentionLayer>(name, "attention_backward", path)
      .param("BLOCK_M", &Shape::block_m, {64, 32, 16})
      .param("BLOCK_N", &Shape::block_n, {64, 32})
      .param("SLICE", &Shape::slice, {128, 256, 64})
      .applies([units](const AttentionLayer& layer, const Target& target) {
        return descriptor::refuse_wide(units, layer, target, {"q", "k", "v", "dy"});
      })
      .rule("tiles fit shared memory",
            [units](const Shape& shape, const AttentionLayer&, const Target& target) {
              return descriptor::memory_bytes_of(units, shape) <= target.arch.shared_per_block;
            })
      .pruning("all rows, columns and elements have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 const int64_t lines = std::max(layer.rows(), layer.keys());
                 return descriptor::attention_wide_has_work(shape, lines, lines,
                                                            std::max(layer.depth(), layer.width()));
               })
      .opens(
          [units](const Shape& shape, const AttentionLayer&, const Target&) { return has_open_kernel(units, shape); })
      .program([units](const Shape& shape, const AttentionLayer& layer, const Target&, const Emitter& emit) {
        return program(units, shape, layer, emit);
      })
      .estimate([units](const Shape& shape, const AttentionLayer& layer, const Target& target,
                        const DeviceFigures& device) { return predict(units, shape, layer, target, device); });
}

}  // namespace kiln
