// Where kernels find the elements of a contraction's operands in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "contraction/regions.h"
#include "descriptor/strided.h"
#include "descriptor/window.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// Addresses of the operands of a contraction, as those of a convolution in one to three dimensions:
///
///   y[n,k,p] = sum over c and taps t of x[n, c of the group of k, p * stride - pad + t * dilation] * w[k,c,t]
///
/// The operands a, b and c of the matrix product stand in the tensors x, w and y. Its rows are the pixels p of all
/// images n, its columns the filters k of a group, its depth the channels c of a group with the taps t. A product of
/// matrices that stand in memory as they are is the case of one tap, with rows along one axis or along the images.
/// x, w, y and residual have three spatial dimensions (with_three_axes()).
///
/// More is possible than a request of conv_forward can say: pads and strides may be negative, y may end anywhere, and
/// groups of x and of w may lie apart as they like (the extents of x and w are then those of one group's channels and
/// of all filters). Layouts that many points of a space ask for are worked out once, by read_layouts().
struct ConvolutionAddresses : SpatialAxes {
  TensorSpec x, w, y;
  std::optional<TensorSpec> residual;
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
  /// Channels behind those of y: operands are filled up with zeros, and their sums are not stored. Nor are those of the
  /// images of x behind those of y.
  int64_t k_filled_up = 0;

  int64_t n() const { return x.extents[dimension::batch]; }
  int64_t c() const { return x.extents[dimension::channel]; }
  int64_t k() const { return y.extents[dimension::channel] + k_filled_up; }
  int64_t c_per_group() const { return w.extents[dimension::channel]; }
  int64_t k_per_group() const { return k() / groups; }

  /// Works out channels_inner, y_along_k, pointwise and filters_inner from the operands and axes.
  void read_layouts();
};

/// Gives each region blocks of its own, which make the region's pixels of y with the region's filters. The filters of
/// two regions are `region_stride` elements apart in w.
void divide_pixels(ConvolutionAddresses& conv, int64_t region_stride);
/// Gives each region blocks of its own, whose taps are the outputs of the region: of the gradient by the filters, which
/// are `region_stride` elements apart in y.
void divide_taps(ConvolutionAddresses& conv, const SpatialRegions& regions, int64_t region_stride);
/// Gives each segment of y blocks of its own, which read the filters of the regions that its taps meet in x. The
/// filters of two regions are `region_stride` elements apart in w.
void divide_inputs(ConvolutionAddresses& conv, const SpatialRegions& regions, int64_t region_stride);

/// Types, extents, strides, pads, window strides, dilations and groups, under the names that kernels use. Of the
/// windows, `fixed` is no extent. Tables are left to add_segments().
Prelude addresses_prelude(const ConvolutionAddresses& conv, FixedAxes fixed = FixedAxes::nothing);

/// Taps that an open kernel's tables have room for.
constexpr int64_t most_open_taps = 64;

/// Table of taps: TAP_W, the distance in w from the first tap.
void add_filter_taps(Prelude& prelude, const ConvolutionAddresses& conv);
/// Tables of taps: TAP_X, the distance in x from the first tap, and TAP_WINDOW, bits of the tap's column, row and
/// plane: COLUMN_BITS, ROW_BITS and PLANE_BITS side by side. Along an axis that no tap leaves they share one bit.
void add_tap_tables(Prelude& prelude, const ConvolutionAddresses& conv);
/// All of these bits.
int64_t tap_bits(const ConvolutionAddresses& conv);

/// Whether neighbours along dimension 0 of `spec` stand closer together than along any dimension from `first_other` on.
bool dimension_0_is_inner(const TensorSpec& spec, size_t first_other);

/// Most elements that one store to y may move, and one read of the residual where there is one: channels if y_along_k,
/// else pixels. A power of two that divides `of`.
int output_vector_width(const ConvolutionAddresses& conv, int64_t of);

/// Elements that are read of w's sectors for each one that is used: more than one where inputs are divided, as taps
/// that stand side by side are read for different regions.
double filter_spread(const ConvolutionAddresses& conv);

/// Share of the filter's taps that fall inside the image, averaged over the outputs: 1 without padding.
double inside_share(const SpatialAxes& axes);

}  // namespace kiln::descriptor
