// How the rows of a softmax lie in memory, and the constants of its kernels: shared by their descriptors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/program.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// One dimension, or several that continue each other in x and in y. Strides are in elements.
struct RowDimension {
  int64_t extent = 1, x_stride = 0, y_stride = 0;
};

/// x and y as kernels see them: dimensions of an extent of 1 are left out, others are merged as far as their strides in
/// x and y allow.
struct RowLayout {
  RowDimension axis;
  RowDimension inner;               ///< Of across_rows(): the dimension whose rows a block takes side by side.
  std::vector<RowDimension> outer;  ///< The others, innermost first. The batch stands last if it is dynamic.
  bool across = false;              ///< Whether neighbouring threads are neighbours along `inner`, not along the axis.

  /// The dimension along which a thread takes several neighbours.
  const RowDimension& neighbours() const { return across ? inner : axis; }
  /// Whether those are side by side in x and in y.
  bool contiguous() const;
};

/// For kernels whose neighbouring threads take neighbours of a row.
RowLayout along_rows(const SoftmaxForward& softmax);

/// For kernels whose neighbouring threads take neighbouring rows. `inner` is a single row where there are no neighbours
/// that refuse_across_rows() accepts.
RowLayout across_rows(const SoftmaxForward& softmax);

/// All rows as one dimension, if their elements are side by side in x and in y and all rows equally far apart.
std::optional<RowDimension> contiguous_rows(const SoftmaxForward& softmax);

/// Why kernels of along_rows() are not for this request: rows are empty, or another dimension than the axis is the
/// innermost both of x and of y. A dynamic batch does not count as one, because its length is not a constant.
std::optional<std::string> refuse_along_rows(const SoftmaxForward& softmax);

/// Why kernels of across_rows() are not for this request: rows are empty, or the axis is the innermost dimension both
/// of x and of y, or the only one besides a dynamic batch.
std::optional<std::string> refuse_across_rows(const SoftmaxForward& softmax);

/// Elements that one access of x and of y moves when a thread takes `vector` neighbours: as many as the strides,
/// extents and alignment of each allow.
struct Access {
  int x_run = 1, y_run = 1;
};
Access access_of(const SoftmaxForward& softmax, const RowLayout& layout, int vector);

/// Whether `vector` divides the neighbours, and x or y can be moved in accesses of so many (of 16 bytes).
bool vector_pays(const SoftmaxForward& softmax, const RowLayout& layout, int vector);

/// Bytes of the sectors that lanes touch for an element of x and for one of y.
struct ElementBytes {
  double x = 0, y = 0;
};
ElementBytes element_bytes(const SoftmaxForward& softmax, const RowLayout& layout, int vector);

/// Rows of one image.
int64_t rows_per_image(const SoftmaxForward& softmax);

/// Blocks for `rows_per_block` rows each.
Count blocks_for_rows(const SoftmaxForward& softmax, int64_t rows_per_block);

/// TX, TY, Index, ROWS, ROWS_PER_IMAGE, DYNAMIC_N, ROW, LOG, ALPHA and BETA.
Prelude softmax_prelude(const SoftmaxForward& softmax);

/// As softmax_prelude(), with what lib/softmax_rows.cuh asks for.
Prelude rows_prelude(const SoftmaxForward& softmax, const RowLayout& layout, int vector);

/// Bytes of x read once and y written once (and read, if beta asks for it).
double compulsory_bytes(const SoftmaxForward& softmax);

}  // namespace kiln::descriptor
