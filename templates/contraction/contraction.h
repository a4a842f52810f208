// A convolution, a gradient or a matrix product as a matrix-product kernel sees it: one value for all of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contraction/regions.h"
#include "descriptor/strided.h"
#include "descriptor/window.h"
#include "kiln/generator/program.h"
#include "kiln/generator/request.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// Products of a batch that one launch makes, each with operands of its own: extents of up to three batch dimensions,
/// outermost first, and the strides of the operands along them (0 where one is used again).
struct ProductBatch {
  std::array<int64_t, 3> extents{1, 1, 1};
  std::array<int64_t, 3> x{}, w{}, y{}, residual{};

  int64_t products() const { return extents[0] * extents[1] * extents[2]; }
};

/// Sums of products that a matrix-product kernel can make, as a convolution in one to three dimensions, a gradient of
/// one or a matrix product has them:
///
///   y[n,k,p] = sum over c and taps t of x[n, c of the group of k, p * stride - pad + t * dilation] * w[k,c,t]
///
/// As a matrix product M are the pixels p of all images n, N the filters k of a group, and K the channels c of a group
/// with the taps. x, w, y and residual have three spatial dimensions (with_three_axes()).
///
/// It is freer than a request of conv_forward: pads and strides may be negative, y may end anywhere, and groups of x
/// and of w may lie apart as they like (the extents of x and w are then those of one group's channels and of all
/// filters). Layouts that many points of a space ask for are worked out once, by read_layouts().
struct Contraction : SpatialAxes {
  TensorSpec x, w, y;
  std::optional<TensorSpec> bias, residual;
  std::vector<EpilogueStage> epilogue;
  Blend blend;
  Arithmetic arithmetic;
  int64_t groups = 1;
  bool mirrored = false;  ///< taps are met backwards
  bool dynamic_batch = false;

  /// Elements from the channels, and from the filters, of one group to those of the next.
  int64_t x_group_stride = 0, w_group_stride = 0;
  /// Elements of w, of y and of the residual before the first that it is about.
  int64_t w_first = 0, y_first = 0, residual_first = 0;
  /// Nothing is multiplied: the outputs are those of empty sums.
  bool no_taps = false;

  SpatialRegions region_axes;
  Divided divided = Divided::nothing;
  /// Elements from the filters, and from the first pixel of y, of one region to those of the next: the latter where
  /// taps are divided.
  int64_t w_region_stride = 0, y_region_stride = 0;
  Segments segments;  ///< where inputs are divided

  /// One launch makes the products of a batch.
  std::optional<ProductBatch> batch;

  /// The elements of a filter are worked off channels first: those of x stand side by side, or are all there is.
  bool channels_inner = false;
  /// Neighbours in y that one store moves are channels, not pixels.
  bool y_along_k = false;
  /// Whether an offset into an operand, or a coordinate in the padded input, needs 64 bits.
  bool wide_index = false;
  /// A filter of one tap with unit stride and no padding: a plain matrix product.
  bool pointwise = false;
  /// Neighbouring pixels of y are those of neighbouring images: they are what stands side by side in x.
  bool images_inner = false;
  /// The images of this x are the channels of the tensor, and its channels the images: the gradient by the filter.
  bool images_are_channels = false;
  /// Filters stand side by side in w, not the elements of one.
  bool filters_inner = false;
  /// Instructions of user code for each element of x that is loaded, roughly; 0 without a prologue. For estimates.
  double prologue_instructions = 0;

  int64_t n() const { return x.extents[dimension::batch]; }
  int64_t c() const { return x.extents[dimension::channel]; }
  int64_t k() const { return y.extents[dimension::channel]; }
  int64_t c_per_group() const { return w.extents[dimension::channel]; }
  int64_t k_per_group() const { return k() / groups; }
  int64_t products() const { return batch ? batch->products() : 1; }
  /// Regions, or segments, that have blocks of their own.
  int64_t divisions() const;
  /// Pixels of an image that the largest of them has.
  int64_t division_pixels() const;

  /// Works out channels_inner, y_along_k, pointwise and filters_inner from the operands and axes.
  void read_layouts();
};

/// Gives each region blocks of its own, which make the region's pixels of y with the region's filters. The filters of
/// two regions are `region_stride` elements apart in w.
void divide_pixels(Contraction& contraction, int64_t region_stride);
/// Gives each region blocks of its own, whose taps are the outputs of the region: of the gradient by the filters, which
/// are `region_stride` elements apart in y.
void divide_taps(Contraction& contraction, const SpatialRegions& regions, int64_t region_stride);
/// Gives each segment of y blocks of its own, which read the filters of the regions that its taps meet in x. The
/// filters of two regions are `region_stride` elements apart in w.
void divide_inputs(Contraction& contraction, const SpatialRegions& regions, int64_t region_stride);

/// Types, extents, strides, pads, window strides, dilations, groups, blend and epilogue: what every kernel is
/// specialised for, under the names that the kernels use.
Prelude contraction_prelude(const Contraction& contraction);

/// One launch of `entry` with blocks of `threads` that stores results: it takes `memory`, what it reads and writes, and
/// then bias, residual, alpha, beta, clip_lo, clip_hi, user, n. The grid is the caller's to set.
Launch contraction_launch(std::string entry, int threads,
                          std::vector<Argument> memory = {OperandArgument{"x"}, OperandArgument{"w"},
                                                          OperandArgument{"y"}});
/// One launch of `entry` with blocks of `threads` that stores sums as they are: it takes `memory`, user and n.
Launch sums_launch(std::string entry, int threads, std::vector<Argument> memory);

/// Blocks for `per_image` items of each image of the call, `per_block` items a block.
Count blocks_for(const Contraction& contraction, int64_t per_image, int64_t per_block);

/// Whether neighbours along dimension 0 of `spec` stand closer together than along any dimension from `first_other` on.
bool dimension_0_is_inner(const TensorSpec& spec, size_t first_other);

/// Most elements that one store to y may move, and one read of the residual where there is one: channels if y_along_k,
/// else pixels. A power of two that divides `of`.
int output_vector_width(const Contraction& contraction, int64_t of);

}  // namespace kiln::descriptor
