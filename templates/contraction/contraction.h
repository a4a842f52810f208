// A matrix product, a convolution or a gradient as a kernel for matrix products sees it: one value for all of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contraction/convolution_addresses.h"
#include "kiln/generator/program.h"
#include "kiln/generator/request.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// Products of a batch that one launch makes, each with operands of its own: extents of up to three batch dimensions,
/// outermost first, and the strides of the operands along them (0 where one is used again).
struct ProductBatch {
  std::array<int64_t, 3> extents{1, 1, 1};
  std::array<int64_t, 3> a{}, b{}, c{}, residual{};

  int64_t products() const { return extents[0] * extents[1] * extents[2]; }
};

/// Direction of a matrix product in which neighbours in memory run.
enum class Along { rows, columns, depth };

/// Sums of products that a matrix-product kernel can make:
///
///   c[row][column] = sum over d < depth of a[row][d] * b[d][column]
///
/// for each group and each product of a batch, and then its epilogue. Where the elements of a, b and c are in memory is
/// known to `addresses`, which only makers, convolutions and the prelude read: tilings find below what they need.
struct Contraction {
  ConvolutionAddresses addresses;
  std::optional<TensorSpec> bias;
  std::vector<EpilogueStage> epilogue;
  Blend blend;
  Arithmetic arithmetic;
  /// Whether tensor cores add the products of one step in f16; these sums are added in f32.
  bool f16_sums = false;
  std::optional<ProductBatch> batch;  ///< one launch makes these products
  /// Instructions of user code for each element of a that is loaded, roughly; 0 without a prologue. For estimates.
  double prologue_instructions = 0;

  /// Rows are n times rows_per_n. With a dynamic batch each call brings its own n, and this is the largest.
  int64_t n() const { return addresses.n(); }
  bool dynamic_batch() const { return addresses.dynamic_batch; }
  int64_t rows_per_n() const { return addresses.pixels_per_image(); }
  int64_t rows() const { return n() * rows_per_n(); }
  /// Columns and depth of one group.
  int64_t columns() const { return addresses.k_per_group(); }
  int64_t depth() const { return addresses.c_per_group() * addresses.taps(); }
  int64_t groups() const { return addresses.groups; }
  int64_t products() const { return batch ? batch->products() : 1; }
  /// Whether anything is multiplied: else c is made of empty sums.
  bool multiplies() const { return !addresses.no_taps; }

  /// Parts of the rows, or of the depth, that have blocks of their own: 1 where nothing is divided.
  int64_t divisions() const;
  /// Rows for each n that the division with the most has.
  int64_t division_rows() const;
  /// Tiles of `block` rows, over all divisions; tiles of `block` columns, over all groups; chunks of `block` into which
  /// the depth is cut.
  int64_t row_tiles(int64_t block) const;
  int64_t column_tiles(int64_t block) const;
  int64_t chunks(int64_t block) const;

  Along a_along() const { return addresses.channels_inner ? Along::depth : Along::rows; }
  Along b_along() const { return addresses.filters_inner ? Along::columns : Along::depth; }
  Along c_along() const { return addresses.y_along_k ? Along::columns : Along::rows; }
  /// Whether a is loaded element by element, each with an address of its own.
  bool a_is_gathered() const { return a_along() == Along::rows && !addresses.pointwise; }
  /// Length of the periods that the depth consists of. Where a runs along the depth, its neighbours are those of a
  /// period, and no chunk crosses the end of one. Else chunks of whole periods are loaded alike.
  int64_t period() const { return addresses.channels_inner ? addresses.c_per_group() : addresses.taps(); }
  /// How often an element in memory stands in a, at most: neighbouring rows share it.
  int64_t a_repeats() const { return addresses.taps(); }

  /// Most neighbours that one access of a, of b or of c (and the residual, if there is one) may move. A power of two
  /// that divides `of`.
  int a_run(int64_t of) const;
  /// The same where rows are the channels of x under one tap after the other (images_inner): a run stays under its tap.
  int a_run_of_images(int64_t of) const;
  int b_run(int64_t of) const;
  int c_run(int64_t of) const;

  DType a_type() const { return addresses.x.dtype; }
  DType b_type() const { return addresses.w.dtype; }
  /// Elements in memory from one of a to its neighbour.
  int64_t a_pitch() const;
  /// Elements that are read of b's sectors for each one that is used.
  double b_spread() const { return filter_spread(addresses); }
  /// Whether an offset into an operand needs 64 bits.
  bool wide_index() const { return addresses.wide_index; }

  /// Bytes in memory of all groups, divisions and products.
  double a_bytes() const;
  double b_bytes() const;
  double c_bytes() const;
  double residual_bytes() const;
};

/// Words for the order in which the depth is added on f32 lanes, one product after the other: equal for contractions of
/// one request whose sums have equal bits.
std::string order_on_lanes(const Contraction& contraction);
/// The order of a sum over `channels` channels and `taps` taps of a filter.
struct DepthOrder {
  int64_t channels, taps;
  bool channels_inner = false;  ///< The channels of each tap follow each other; else the taps of each channel do.
  bool backwards = false;       ///< The tap at the last position of a window comes first.
};
std::string order_on_lanes(const DepthOrder& depth);

/// Types, extents, addresses, blend and epilogue: what every kernel is specialised for, under the names that the
/// kernels use. Of the windows, `fixed` is no extent.
Prelude contraction_prelude(const Contraction& contraction, FixedAxes fixed = FixedAxes::nothing);

/// Constants of a second launch that adds parts of sums: PARTS_BY_IMAGES, whether parts, kept in the order of c, have
/// the rows of all n side by side; and STORED_N and STORED_K, the images and channels whose outputs are stored, 0 where
/// all are.
void add_outputs_of_parts(Prelude& prelude, const Contraction& contraction);

/// One launch of `entry` with blocks of `threads` that stores results: it takes `memory`, what it reads and writes, and
/// then bias, residual, alpha, beta, clip_lo, clip_hi, user, n. The grid is the caller's to set.
Launch contraction_launch(std::string entry, int threads,
                          std::vector<Argument> memory = {OperandArgument{"a"}, OperandArgument{"b"},
                                                          OperandArgument{"c"}});
/// One launch of `entry` with blocks of `threads` that stores sums as they are: it takes `memory`, user and n.
Launch sums_launch(std::string entry, int threads, std::vector<Argument> memory);

/// Blocks for `per_n` items for each n of the call, `per_block` items a block.
Count blocks_for(const Contraction& contraction, int64_t per_n, int64_t per_block);

}  // namespace kiln::descriptor
