// Local normalisations and their gradients as their descriptors see them, and the constants of their kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "descriptor/rows.h"
#include "kiln/generator/request.h"

namespace kiln::descriptor {

/// x, means, y (forward) or x, means, dy, dx, dmeans (backward), with stand-ins of one element for those that are not
/// there; the window runs along the axes.
struct LocalNormRows : Rows {
  static LocalNormRows of(const Request& request);

  std::vector<std::string> present;  ///< The operands that there are.
  bool backward = false;
  int64_t size = 1;    ///< Size of the window along each axis.
  int64_t window = 1;  ///< Its elements: what the sum is divided by.
  Blend blend, dmeans_blend;
  double moved_bytes = 0;  ///< Bytes of all operands, each once; the result twice, if it is read.

  bool has_means() const;
  /// `outer`, a layout's dimensions, without a dynamic batch.
  std::vector<RowDimension> fixed(std::vector<RowDimension> outer) const;
  /// The axes, innermost first, without those of one element.
  std::vector<RowDimension> window_dimensions() const;
};

/// Adds the constants of lib/local_norm.cuh, HAS_MEANS and so on, ALPHA and BETA.
void add_local_norm(Prelude& prelude, const LocalNormRows& rows);

/// Blocks for `per_block` elements each.
Count blocks_for_elements(const LocalNormRows& rows, int64_t per_block);

/// One launch of `entry` with the arguments of all kernels: the operands, alpha, beta, what user code reads, the
/// numbers of the operation, n. The grid is the caller's to set.
Launch local_norm_launch(const LocalNormRows& rows, std::string entry, int threads);

}  // namespace kiln::descriptor
