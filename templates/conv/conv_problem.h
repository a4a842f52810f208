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

/// Types, extents, pads, strides, dilations, groups, blend and epilogue: what every convolution kernel is specialised
/// for, under the names that the kernels use.
Prelude conv_prelude(const ConvForward& conv);

/// x, w, y, bias, residual, alpha, beta, clip_lo, clip_hi, n: what every convolution kernel takes.
std::vector<Argument> conv_arguments();

/// Whether an offset into an operand, or a coordinate in the padded input, needs 64 bits.
bool needs_wide_index(const ConvForward& conv);

/// Blocks for `per_image` items of each image of the call, `per_block` items a block.
Count blocks_for(const ConvForward& conv, int64_t per_image, int64_t per_block);

/// The memory order of x, w, y and residual together.
enum class ConvLayout { nchw, nhwc };

/// Whether x, w, y and the residual are all packed in that order.
bool is_packed_as(const ConvForward& conv, ConvLayout layout);

/// The one order in which all operands are packed; nothing if there is none. Where both are true, the one whose
/// innermost loop is longer.
std::optional<ConvLayout> common_layout(const ConvForward& conv);

/// common_layout() of a request that packed_refusal() accepts; throws Error(internal) for another.
ConvLayout layout_of(const ConvForward& conv);

/// Why kernels for packed operands and alpha != 0 cannot serve `conv`; nothing if they can.
std::optional<std::string> packed_refusal(const ConvForward& conv);

/// A 1x1 filter with unit stride and no padding: a plain matrix product.
bool is_pointwise(const ConvForward& conv);

/// Most elements that one access may move where runs of `run` elements start at multiples of `run` in packed memory:
/// a power of two that divides `run`, within `spec`'s alignment and 16 bytes.
int vector_width(const TensorSpec& spec, int64_t run);

/// vector_width() of stores to y, which also read the residual where there is one.
int output_vector_width(const ConvForward& conv, int64_t run);

}  // namespace kiln::descriptor
