// The rows of cross entropy and of its gradient, and the constants and launches of their kernels.
#pragma once

#include <optional>
#include <string>

#include "descriptor/rows.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/cross_entropy.h"

namespace kiln::descriptor {

/// x, targets and loss, or x, targets, dloss and dx. Operands with one element a row have the extent 1 along the
/// classes, a loss of all rows extents of 1.
struct CrossEntropyRows : Rows {
  static CrossEntropyRows of(const Request& request);

  LossReduction reduction = LossReduction::mean;
  std::optional<TensorSpec> weights;
  bool smooths = false;
  int64_t ignore = 0;
  Blend blend;
  bool is_backward = false;
  bool has_dloss = false;
  int kept_bytes = 0;     ///< Bytes of a logit: kept_bytes_of().
  std::string loss_name;  ///< of the request's operand: losses, loss, dlosses or dloss

  bool is_mean() const { return reduction == LossReduction::mean; }
  bool is_reduced() const { return reduction != LossReduction::none; }
  /// Bytes of a logit, and those of everything that is read and written once.
  int logit_bytes() const { return size_of(operands.front().spec.dtype); }
  double compulsory_bytes() const;
};

/// Constants of lib/cross_entropy.cuh and lib/cross_entropy_gradient.cuh, and with a layout those of lib/rows.cuh and
/// lib/cross_entropy_weights.cuh.
Prelude cross_entropy_prelude(const CrossEntropyRows& rows);
Prelude cross_entropy_prelude(const CrossEntropyRows& rows, const RowLayout& layout, int vector, const Emitter& emit);

/// The program of a kernel `entry` of blocks of `threads`, of which there are `blocks`, with the kernels before and
/// after it that the reduction asks for: `entry`_reduce of losses, `entry`_count for their gradient.
Program cross_entropy_program(const CrossEntropyRows& rows, const std::string& entry, int threads, const Count& blocks,
                              Source source);

/// A grid of one slice of `threads` rows of the inner dimension after the other: of kernels across rows.
Count blocks_across(const CrossEntropyRows& rows, const RowLayout& layout, int threads);

/// The part of an estimate that all kernels have in common.
StreamingWork cross_entropy_work(const CrossEntropyRows& rows, int threads);

}  // namespace kiln::descriptor
