// What the descriptors of convolution share: the constants of a problem, its arguments, and how its operands lie.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "descriptor/strided.h"
#include "descriptor/window.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/program.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// The regions of a local convolution's outputs along three axes; one where all outputs have the same filters.
struct SpatialRegions {
  RegionAxis planes, rows, columns;

  static SpatialRegions of(const RegionGrid& grid, int axes);
  int64_t count() const { return planes.regions * rows.regions * columns.regions; }
  bool even() const { return planes.even() && rows.even() && columns.even(); }
};

/// GRID_Z, OUTPUTS_Z and so on: what lib/regions.cuh needs.
void add_regions(Prelude& prelude, const SpatialRegions& regions);

/// What the regions of a local convolution divide where a block works for one of them: the pixels of y, or (where the
/// gradient by the filters is computed) the taps, which are the outputs of the forward convolution. Pixels, or taps,
/// are then those of the largest region. Where the gradient by x is computed, they divide the inputs, which are dy: a
/// block works for a segment of y.
enum class Divided { nothing, pixels, taps, inputs };

/// Pixels of y along three axes, cut wherever a tap meets another region of x than at the pixel before, or begins or
/// ends to meet any (lib/segments.cuh).
struct Segments {
  struct Boxes {
    int64_t pixels;  ///< of an image
    int64_t number;  ///< of segments that have as many
  };
  std::array<std::vector<int64_t>, 3> firsts;  ///< along each axis the first pixel of each, and the end
  std::vector<Boxes> sizes;                    ///< every segment is one of these

  static Segments of(const SpatialAxes& axes, const SpatialRegions& regions);
  int64_t along(size_t axis) const { return static_cast<int64_t>(firsts.at(axis).size()) - 1; }
  int64_t count() const { return along(0) * along(1) * along(2); }
};

/// Products of a batch that one launch makes, each with operands of its own: extents of up to three batch dimensions,
/// outermost first, and the strides of the operands along them (0 where one is used again).
struct ProductBatch {
  std::array<int64_t, 3> extents{1, 1, 1};
  std::array<int64_t, 3> x{}, w{}, y{}, residual{};

  int64_t products() const { return extents[0] * extents[1] * extents[2]; }
};

/// A forward convolution as descriptors see it: x, w, y and residual have three spatial dimensions (with_three_axes()),
/// whatever the request has, and what many points of a space ask for is worked out once.
///
/// Gradients are such convolutions too (conv/conv_parts.h), with liberties that no request has: pads and strides may be
/// negative, y may end anywhere, and groups of x and of w may lie apart as they like (the extents of x and w are then
/// those of one group's channels and of all filters). So are matrix products (gemm/gemm_parts.h), of which a launch may
/// make a batch.
struct ConvProblem : ConvForward, SpatialAxes {
  /// Of a request of conv_forward.
  static ConvProblem of(const Request& request);

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
  /// Regions, or segments, that have blocks of their own.
  int64_t divisions() const;
  /// Pixels of an image that the largest of them has.
  int64_t division_pixels() const;

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
  /// Images of x are the channels of the tensor that it is, and its channels the images: the gradient by the filter.
  bool images_are_channels = false;
  /// Filters stand side by side in w, not the elements of one.
  bool filters_inner = false;
  /// Of matrix products alone.
  std::optional<ProductBatch> batch;

  /// How many of what x, w and y say a launch computes, side by side.
  int64_t products() const { return batch ? batch->products() : 1; }

  /// Works out the members above but wide_index from the operands and axes.
  void read_layouts();
};

/// Types, extents, strides, pads, window strides, dilations, groups, blend and epilogue: what every convolution kernel
/// is specialised for, under the names that the kernels use.
Prelude conv_prelude(const ConvProblem& conv);

/// The constants of lib/epilogue.cuh but for those of the blend.
void add_stages(Prelude& prelude, const std::vector<EpilogueStage>& stages, const std::optional<TensorSpec>& bias,
                const std::optional<TensorSpec>& residual);

/// One launch of `entry` with blocks of `threads` and the arguments that every convolution kernel takes: x, w, y, bias,
/// residual, alpha, beta, clip_lo, clip_hi, user, n. The grid is the caller's to set.
Launch conv_launch(std::string entry, int threads);

/// Blocks for `per_image` items of each image of the call, `per_block` items a block.
Count blocks_for(const ConvProblem& conv, int64_t per_image, int64_t per_block);

/// Whether neighbours along dimension 0 of `spec` stand closer together than along any dimension from `first_other` on.
bool dimension_0_is_inner(const TensorSpec& spec, size_t first_other);

/// Most elements that one store to y may move, and one read of the residual where there is one: channels if y_along_k,
/// else pixels. A power of two that divides `of`.
int output_vector_width(const ConvProblem& conv, int64_t of);

}  // namespace kiln::descriptor
