#include "attention/wide.h"

#include <algorithm>

#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

constexpr int warp_rows = 16;
constexpr int64_t chunk_on_lanes = 32, chunk_on_tensor_cores = 64;

int64_t chunk_of(AttentionUnits units) {
  return units == AttentionUnits::lanes ? chunk_on_lanes : chunk_on_tensor_cores;
}
int64_t tile_bytes(AttentionUnits units, int64_t rows, int64_t elements) {
  return units == AttentionUnits::lanes ? float_tile_bytes(rows, elements) : half_tile_bytes(rows, elements);
}
AttentionBlockShape on_lanes(const AttentionWideShape& shape) {
  return {shape.block_m, shape.block_n};
}
AttentionTensorShape on_tensor_cores(const AttentionWideShape& shape) {
  return {shape.block_m / warp_rows, warp_rows, shape.block_n, 0};
}

}  // namespace

int64_t slices_of(const AttentionWideShape& shape, int64_t elements) {
  return ceil_div(elements, shape.slice);
}

int64_t threads_of(AttentionUnits units, const AttentionWideShape& shape) {
  return units == AttentionUnits::lanes ? threads_of(on_lanes(shape)) : on_tensor_cores(shape).threads();
}

int64_t memory_bytes_of(AttentionUnits units, const AttentionWideShape& shape) {
  const int64_t chunk = chunk_of(units);
  return 2 * (tile_bytes(units, shape.block_m, chunk) + tile_bytes(units, shape.block_n, chunk)) +
         tile_bytes(units, shape.block_n, shape.slice);
}

std::optional<std::string> refuse_wide(AttentionUnits units, const AttentionLayer& layer, const Target& target,
                                       std::initializer_list<std::string_view> pairs) {
  if (std::max(layer.depth(), layer.width()) < least_wide_elements) return "queries and values have up to 128 elements";
  return units == AttentionUnits::lanes ? std::nullopt : refuse_on_tensor_cores(layer, target, pairs);
}

void add_attention_wide(Prelude& prelude, AttentionUnits units, const AttentionWideShape& shape,
                        const AttentionLayer& layer, std::initializer_list<std::string_view> factors) {
  prelude.constant("CHUNK", chunk_of(units)).constant("SLICE", shape.slice);
  const int64_t bytes = memory_bytes_of(units, shape);
  if (units == AttentionUnits::lanes) {
    add_attention_block(prelude, on_lanes(shape), layer, bytes);
  } else {
    add_attention_tensor(prelude, on_tensor_cores(shape), layer, factors, bytes);
  }
}

bool attention_wide_has_work(const AttentionWideShape& shape, int64_t rows, int64_t columns, int64_t elements) {
  return attention_block_has_work(on_lanes(shape), rows, columns) && (shape.slice == 64 || shape.slice / 2 < elements);
}

Estimate attention_wide_estimate(AttentionUnits units, const AttentionWideShape& shape, const AttentionLayer& layer,
                                 const WideLaunch& launch, const Target& target, const DeviceFigures& device) {
  const double slice = shape.slice, scores = launch.of_scores,
               own_per_column = double{1} * shape.block_m / shape.block_n;
  const double loaded = scores * (1 + own_per_column) + slice;
  const int64_t bytes = memory_bytes_of(units, shape);
  if (units == AttentionUnits::lanes) {
    const AttentionBlockShape block = on_lanes(shape);
    return grid_estimate(attention_block_work(block, layer, launch.blocks,
                                              {.of_scores = scores,
                                               .weighted = slice,
                                               .loaded = loaded,
                                               .registers = row_sums(block, shape.slice) + 16,
                                               .repeats = launch.repeats,
                                               .waits = scores / chunk_on_lanes},
                                              bytes),
                         target.arch, device);
  }
  return attention_tensor_estimate(on_tensor_cores(shape), layer, launch.blocks,
                                   {.of_scores = scores,
                                    .weighted = slice,
                                    .loaded = loaded,
                                    .instructions = 10,
                                    .registers = shape.slice / 2 + shape.block_n + 60,
                                    .memory_bytes = bytes,
                                    .repeats = launch.repeats,
                                    .waits = scores / chunk_on_tensor_cores},
                                   target, device);
}

}  // namespace kiln::descriptor
