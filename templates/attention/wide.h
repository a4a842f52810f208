// Parts that descriptors of attention for heads of many elements share: lib/attention_chunks.cuh.
#pragma once

#include <initializer_list>
#include <string_view>

#include "attention/block.h"
#include "attention/tensor.h"

namespace kiln::descriptor {

/// Units that multiply.
enum class AttentionUnits { lanes, tensor_cores };

struct AttentionWideShape {
  int block_m;  // rows of scores
  int block_n;  // columns
  int slice;    // of the elements of results, for each a block of its own
};

/// From so many elements of a query or value on.
inline constexpr int64_t least_wide_elements = 129;

/// Slices of so many elements.
int64_t slices_of(const AttentionWideShape& shape, int64_t elements);
int64_t threads_of(AttentionUnits units, const AttentionWideShape& shape);
int64_t memory_bytes_of(AttentionUnits units, const AttentionWideShape& shape);

/// Why the units do not take the layer: `pairs` holds factors, two of each product.
std::optional<std::string> refuse_wide(AttentionUnits units, const AttentionLayer& layer, const Target& target,
                                       std::initializer_list<std::string_view> pairs);
/// Constants of the template. `factors`: as add_attention_tensor has them.
void add_attention_wide(Prelude& prelude, AttentionUnits units, const AttentionWideShape& shape,
                        const AttentionLayer& layer, std::initializer_list<std::string_view> factors);

/// Whether half as many rows, columns or elements of a slice would be too few for so many.
bool attention_wide_has_work(const AttentionWideShape& shape, int64_t rows, int64_t columns, int64_t elements);

/// A launch: its blocks, of which `repeats` compute each score, of so many multiply-adds.
struct WideLaunch {
  double blocks, repeats, of_scores;
};
Estimate attention_wide_estimate(AttentionUnits units, const AttentionWideShape& shape, const AttentionLayer& layer,
                                 const WideLaunch& launch, const Target& target, const DeviceFigures& device);

}  // namespace kiln::descriptor
