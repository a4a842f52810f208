// What the descriptors of convolution share: the constants of a problem, its arguments, and the layouts that the fast
// kernels read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/generator/arch.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/program.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// The memory order of x, w, y and residual together.
enum class ConvLayout { nchw, nhwc };

/// A request as descriptors see it, with what many points of a space ask for worked out once.
struct ConvProblem : ConvForward {
  static ConvProblem of(const Request& request);

  /// The one order in which all operands are packed; nothing if there is none. Where both are true, the one whose
  /// innermost loop is longer.
  std::optional<ConvLayout> common_layout;
  /// Whether an offset into an operand, or a coordinate in the padded input, needs 64 bits.
  bool wide_index = false;
  /// A 1x1 filter with unit stride and no padding: a plain matrix product.
  bool pointwise = false;

  /// common_layout of a problem that packed_refusal() accepts; throws Error(internal) for another.
  ConvLayout layout() const;
};

/// Types, extents, pads, strides, dilations, groups, blend and epilogue: what every convolution kernel is specialised
/// for, under the names that the kernels use.
Prelude conv_prelude(const ConvProblem& conv);

/// One launch of `entry` with blocks of `threads` and the arguments that every convolution kernel takes: x, w, y, bias,
/// residual, alpha, beta, clip_lo, clip_hi, n. The grid is the caller's to set.
Launch conv_launch(std::string entry, int threads);

/// Blocks for `per_image` items of each image of the call, `per_block` items a block.
Count blocks_for(const ConvProblem& conv, int64_t per_image, int64_t per_block);

/// Whether x, w, y and the residual are all packed in that order.
bool is_packed_as(const ConvForward& conv, ConvLayout layout);

/// Why kernels for packed operands and alpha != 0 cannot serve `conv`; nothing if they can.
std::optional<std::string> packed_refusal(const ConvProblem& conv);

/// Most elements that one access may move where runs of `run` elements start at multiples of `run` in packed memory:
/// a power of two that divides `run`, within `spec`'s alignment and 16 bytes.
int vector_width(const TensorSpec& spec, int64_t run);

/// vector_width() of stores to y, which also read the residual where there is one.
int output_vector_width(const ConvProblem& conv, int64_t run);

}  // namespace kiln::descriptor
