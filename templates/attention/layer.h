// Parts that descriptors of attention and its gradients share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/layer_operands.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/attention.h"

namespace kiln::descriptor {

/// Attention, or its gradients.
struct AttentionLayer : Attention {
  LayerOperands operands;

  static AttentionLayer of(const Request& request);

  /// Nothing where the request has none.
  const std::optional<TensorSpec>& operand(std::string_view name) const { return spec_of(operands, name); }
  /// Bytes that have to move: each operand once.
  double bytes() const { return bytes_of(operands); }
  /// Rows of a head of keys: queries of all heads that share it.
  int64_t rows() const { return heads() / key_heads() * queries(); }
  /// Whether there are gradients of keys or values.
  bool has_gradients_of_keys() const { return operand("dk") || operand("dv"); }
  /// Queries of all heads and images, and keys of all key heads.
  double lines() const { return static_cast<double>(images() * heads() * queries()); }
  double key_lines() const { return static_cast<double>(images() * key_heads() * keys()); }
  /// Pairs of a query and a key that it sees.
  double pairs() const { return visible_pairs(*this) * static_cast<double>(images() * heads()); }
};

/// Constants of lib/attention.cuh, and those of results.
Prelude attention_prelude(const AttentionLayer& layer);

/// One launch of `entry` with blocks of `threads`: all operands, scale, dropout with its seed and offset, alpha, beta,
/// user code and n. The grid is the caller's to set.
Launch attention_launch(const AttentionLayer& layer, std::string entry, int threads);

/// How keys are shared by blocks: attention_parts.cuh. A part has whole tiles of `columns` keys.
struct KeyParts {
  int64_t parts, columns;
};

/// Words for the order in which a kernel on such `units` adds. Where queries see keys from their own place on, its rows
/// say where it begins.
std::string order_of_tiles(std::string_view units, const AttentionLayer& layer, int64_t rows, const KeyParts& parts);

/// Blocks of `per_block` lines, of so many in each image and key head.
Count attention_blocks(const AttentionLayer& layer, int64_t lines, int64_t per_block);

/// Program of a kernel `entry` for rows of queries, with blocks of `per_block` of them for each part of the keys, and
/// of `entry`_join if there are several.
Program parts_program(const AttentionLayer& layer, Prelude& prelude, const Emitter& emit, const Launch& launch,
                      const KeyParts& parts, int64_t per_block);
/// Whether there are so many parts, and each has work: many queries need none.
bool parts_have_work(const AttentionLayer& layer, const KeyParts& parts, int64_t per_block);
/// Seconds of the kernel that joins them.
double join_seconds(const AttentionLayer& layer, const KeyParts& parts, const DeviceFigures& device);

/// Blocks that share the elements of a gradient: of those of queries, and of keys and values.
struct GradientSlices {
  int64_t of_queries = 1, of_keys = 1;
};

/// Program of gradients: a kernel `entry` for rows of queries, and `entry`_keys for rows of keys where their gradients
/// are asked for, with blocks of `per_block` rows each. The first one leaves the second one the sum of dy y of each
/// query.
Program gradient_program(const AttentionLayer& layer, Source source, const std::string& entry, int threads,
                         int64_t per_block, int64_t memory_bytes, const GradientSlices& slices = {});

}  // namespace kiln::descriptor
