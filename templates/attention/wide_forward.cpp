#include "attention/wide_forward.h"

#include "descriptor/prelude_and_launch.h"

namespace kiln {
namespace attention_wide_descriptor {
namespace {

using descriptor::AttentionLayer;
using descriptor::AttentionUnits;
using descriptor::KeyParts;

struct Shape : descriptor::AttentionWideShape {
  int parts;  // of the keys, for each a block of its own
};

KeyParts parts_of(const Shape& shape) {
  return {shape.parts, shape.block_n};
}

bool has_open_kernel(AttentionUnits units, const Shape& shape) {
  const bool is_usual = shape.block_m == 64 && shape.block_n == (units == AttentionUnits::lanes ? 32 : 64);
  const bool is_step = shape.block_m == 16 && shape.block_n == 64;
  return shape.slice == 128 && ((is_usual && shape.parts == 1) || (is_step && shape.parts == 16));
}

Program program(AttentionUnits units, const Shape& shape, const AttentionLayer& layer, const Emitter& emit) {
  Prelude prelude = descriptor::attention_prelude(layer);
  descriptor::add_attention_wide(prelude, units, shape, layer, {"q", "k", "v"});
  Launch launch =
      descriptor::attention_launch(layer, "attention_wide", static_cast<int>(descriptor::threads_of(units, shape)));
  launch.dynamic_shared_bytes = static_cast<unsigned>(descriptor::memory_bytes_of(units, shape));
  launch.grid[2] = Count{descriptor::slices_of(shape, layer.width())};
  return descriptor::parts_program(layer, prelude, emit, launch, parts_of(shape), shape.block_m);
}

Estimate predict(AttentionUnits units, const Shape& shape, const AttentionLayer& layer, const Target& target,
                 const DeviceFigures& device) {
  const auto slices = static_cast<double>(descriptor::slices_of(shape, layer.width()));
  const Count blocks = descriptor::attention_blocks(layer, layer.rows(), shape.block_m);
  const double count = static_cast<double>((blocks.fixed + blocks.per_n * layer.images()) * shape.parts) * slices;
  Estimate estimate = descriptor::attention_wide_estimate(
      units, shape, layer, {count, slices, static_cast<double>(layer.depth())}, target, device);
  estimate.seconds += descriptor::join_seconds(layer, parts_of(shape), device);
  return estimate;
}

std::optional<std::string> refuse(AttentionUnits units, const AttentionLayer& layer, const Target& target) {
  const std::optional<std::string> refusal = descriptor::refuse_wide(units, layer, target, {"q", "k"});
  return refusal ? refusal : descriptor::refuse_wide(units, layer, target, {"v"});
}

}  // namespace
}  // namespace attention_wide_descriptor

Algorithm describe_attention_wide(descriptor::AttentionUnits units, const char* name, const char* path) {
  using namespace attention_wide_descriptor;
  return describe<Shape, AttentionLayer>(name, "attention_forward", path)
      .param("BLOCK_M", &Shape::block_m, {64, 32, 16})
      .param("BLOCK_N", &Shape::block_n, {64, 32})
      .param("SLICE", &Shape::slice, {128, 256, 64})
      .param("PARTS", &Shape::parts, {1, 4, 16})
      .applies([units](const AttentionLayer& layer, const Target& target) { return refuse(units, layer, target); })
      .rule("tiles fit shared memory",
            [units](const Shape& shape, const AttentionLayer&, const Target& target) {
              return descriptor::memory_bytes_of(units, shape) <= target.arch.shared_per_block;
            })
      .pruning("all rows, columns and elements have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 return descriptor::attention_wide_has_work(shape, layer.rows(), layer.keys(), layer.width());
               })
      .pruning("parts of the keys have work",
               [](const Shape& shape, const AttentionLayer& layer, const Target&) {
                 return descriptor::parts_have_work(layer, parts_of(shape), shape.block_m);
               })
      .opens(
          [units](const Shape& shape, const AttentionLayer&, const Target&) { return has_open_kernel(units, shape); })
      .adds([units](const Shape& shape, const AttentionLayer& layer, const Target&) {
        const bool on_lanes = units == AttentionUnits::lanes;
        return descriptor::order_of_tiles(on_lanes ? "lanes in chunks" : "tensor cores in chunks", layer, shape.block_m,
                                          parts_of(shape));
      })
      .program([units](const Shape& shape, const AttentionLayer& layer, const Target&, const Emitter& emit) {
        return program(units, shape, layer, emit);
      })
      .estimate([units](const Shape& shape, const AttentionLayer& layer, const Target& target,
                        const DeviceFigures& device) { return predict(units, shape, layer, target, device); });
}

}  // namespace kiln
