// How the rows of a softmax lie in memory, and the constants of its kernels: shared by their descriptors.
#pragma once

#include <optional>
#include <string>

#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/program.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// x and y as [outer][row][inner], in elements. Dimensions other than the axis are merged as far as their strides in x
/// and y allow. Strides of an extent of 1 are 0.
struct RowLayout {
  int64_t outer = 1, row = 1, inner = 1;
  int64_t x_outer_stride = 0, y_outer_stride = 0;
  int64_t x_axis_stride = 0, y_axis_stride = 0;

  /// x or y as a tensor of three dimensions, for vector_fits().
  TensorSpec three_dimensions(const TensorSpec& spec, bool is_x) const;
};

/// Rows of at least one element whose elements are neighbours in x and y, at one regular distance from each other:
/// inner is 1. Nothing if the request is not like that, or if the rows of an image of a dynamic batch are not the
/// neighbours of each other.
std::optional<RowLayout> contiguous_rows(const SoftmaxForward& softmax);

/// Rows of at least one element across a contiguous inner dimension of more than 1. Nothing if the request is not like
/// that, or if a dynamic batch is not the outer dimension.
std::optional<RowLayout> strided_rows(const SoftmaxForward& softmax);

/// Rows of one image.
int64_t rows_per_image(const SoftmaxForward& softmax);

/// Blocks for `rows_per_block` rows each.
Count blocks_for_rows(const SoftmaxForward& softmax, int64_t rows_per_block);

/// TX, TY, Index, ROWS, ROWS_PER_IMAGE, DYNAMIC_N, ROW, LOG, ALPHA and BETA.
Prelude softmax_prelude(const SoftmaxForward& softmax);

/// As softmax_prelude(), with X_ROW_STRIDE and Y_ROW_STRIDE.
Prelude contiguous_prelude(const SoftmaxForward& softmax);

/// Why contiguous rows cannot be served; nothing if they can.
std::optional<std::string> refuse_unless_contiguous(const SoftmaxForward& softmax);

/// Whether Vectors of `elements` can move contiguous rows.
bool row_vector_fits(const SoftmaxForward& softmax, int64_t elements);

/// Bytes of x read once and y written once (and read, if beta asks for it).
double compulsory_bytes(const SoftmaxForward& softmax);

}  // namespace kiln::descriptor
