// What most descriptors need: the common constants of a prelude, grids that follow the batch, argument lists.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "kiln/generator/program.h"
#include "kiln/generator/request.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// Whether offsets into one of `specs`, or an index a little beyond its elements (a grid's last block), need 64 bits.
bool needs_wide_index(std::initializer_list<const TensorSpec*> specs);

/// NAME_STRIDE_N, NAME_STRIDE_C and so on: the strides of `spec` in elements, one letter of `letters` a dimension.
void add_strides(Prelude& prelude, std::string_view name, std::string_view letters, const TensorSpec& spec);

/// ALPHA and BETA, as lib/blend.cuh names the classes.
void add_blend(Prelude& prelude, const Blend& blend);

/// N (the bucket's top if dynamic) and DYNAMIC_N: whether the argument n counts instead.
void add_batch(Prelude& prelude, int64_t n, bool dynamic);

/// Blocks for `per_image` items in each of n images, `per_block` items a block; n is the call's if `dynamic`.
Count blocks_for(int64_t per_image, int64_t n, bool dynamic, int64_t per_block);

/// One launch of `entry` with blocks of `threads` and the arguments x, y, alpha, beta, n. The grid is the caller's to
/// set.
Launch unary_launch(std::string entry, int threads);

/// Taps of a window that fall inside `extent` elements along one axis, for the average output.
double mean_taps_inside(int64_t outputs, int64_t extent, int64_t window, int64_t pad, int64_t stride, int64_t dilation);

/// Whether `elements` (a power of two) neighbours along `dimension` can move as one Vector of lib/vector.cuh wherever a
/// multiple of `elements` starts: the stride there is 1, the extent is a multiple of `elements`, and the pointer and
/// the other strides keep every access (of up to 16 bytes) aligned.
bool vector_fits(const TensorSpec& spec, int dimension, int64_t elements);

/// The largest power of two up to `most` that vector_fits().
int widest_vector(const TensorSpec& spec, int dimension, int most);

}  // namespace kiln::descriptor
