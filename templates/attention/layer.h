// Parts that descriptors of attention and its gradients share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/attention.h"

namespace kiln::descriptor {

/// An operand as templates see it: its type and the strides of its dimensions, a letter each.
struct AttentionOperand {
  std::string name;
  std::string_view dimensions;
  std::optional<TensorSpec> spec;  ///< Nothing where the request has none; extents of 1 that repeat have the stride 0.
};

/// Attention, or its gradients.
struct AttentionLayer : Attention {
  std::vector<AttentionOperand> operands;

  static AttentionLayer of(const Request& request);

  /// Nothing where the request has none.
  const std::optional<TensorSpec>& operand(std::string_view name) const;
  /// Bytes that have to move: each operand once.
  double bytes() const;
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

/// One launch of `entry` with blocks of `threads`: all operands, scale, dropout with its seed and
/// offset, alpha, beta, user code and n. The grid is the caller's to set.
Launch attention_launch(const AttentionLayer& layer, std::string entry, int threads);

/// Words for the order in which a kernel adds that takes `columns` keys at a time, on such `units`. Where queries see
/// keys from their own place on, its rows say where it begins.
std::string order_of_tiles(std::string_view units, const AttentionLayer& layer, int64_t rows, int64_t columns);

/// Blocks of `per_block` lines, of so many in each image and key head.
Count attention_blocks(const AttentionLayer& layer, int64_t lines, int64_t per_block);

/// Program of gradients: a kernel `entry` for rows of queries, and `entry`_keys for rows of keys where their gradients
/// are asked for, with blocks of `per_block` rows each. The first one leaves the second one the sum of dy y of each
/// query.
Program gradient_program(const AttentionLayer& layer, Source source, const std::string& entry, int threads,
                         int64_t per_block, int64_t memory_bytes);

}  // namespace kiln::descriptor
