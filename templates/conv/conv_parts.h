// The passes of a convolution as forward convolutions: what one machinery of kernels serves them all with.
//
// - conv_forward is one.
// - The gradient by x of a convolution with unit stride is the convolution of dy with the mirrored filter, C and K of w
//   swapped. With a stride, the elements of dx fall into classes: those whose position h + pad leaves the same
//   remainder divided by the stride meet the same taps, which are evenly spaced, so each class is a convolution of dy
//   with some of the taps. A class that meets none is a convolution of which nothing is computed (alpha of class zero).
// - The gradient by w is the convolution of x, N and C swapped, with dy as the filter: its stride is the dilation, and
//   the other way round.
// - A matrix product is the convolution of one row of pixels with filters of one tap (gemm/gemm_parts.h).
//
// Of a local convolution the same holds for each region: of the forward pass the pixels are divided, of the gradient by
// w, where outputs are taps, the taps are. The gradient by x is another matter:
// conv/local_conv_backward_data_columns.cu.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "conv/conv_problem.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"

namespace kiln::descriptor {

/// What one launch (or a few that belong together) computes of a request.
struct ConvPart {
  ConvProblem conv;
  OperandArgument x, w, y;  ///< what the request calls the operands of `conv`
};

/// A convolution with parameters of `pass`, of which it may be a gradient, and without operands.
ConvProblem problem_of(const ConvPass& pass);

/// Gives each region of `conv` blocks of its own, which make the region's pixels of y with the region's filters. Those
/// are `region_stride` elements apart in w.
void divide_pixels(ConvProblem& conv, int64_t region_stride);

/// A request of conv_forward, conv_backward_data or conv_backward_filter, of a local convolution or its gradient by the
/// filters, or of gemm.
struct ConvParts {
  static ConvParts of(const Request& request);

  std::vector<ConvPart> list;          ///< at least one, unless refused
  std::optional<std::string> refusal;  ///< why kernels that multiply cannot serve the request

  /// The part with the most products: what a choice of parameters should suit.
  const ConvProblem& main() const { return list[main_part].conv; }

  size_t main_part = 0;
};

/// The refusal of the request, or else that of its main part.
std::optional<std::string> parts_refusal(const ConvParts& parts,
                                         std::optional<std::string> (*refusal)(const ConvProblem&));

/// A rule on one convolution as a rule on the main part, or on all parts.
template <class Holds>
auto for_main(Holds holds) {
  return [holds](const auto& parameters, const ConvParts& parts, const Target& target) {
    return !parts.refusal && holds(parameters, parts.main(), target);
  };
}
template <class Holds>
auto for_all(Holds holds) {
  return [holds](const auto& parameters, const ConvParts& parts, const Target& target) {
    return !parts.refusal && std::all_of(parts.list.begin(), parts.list.end(),
                                         [&](const ConvPart& part) { return holds(parameters, part.conv, target); });
  };
}

/// One program of the programs that `make(conv)` gives for the parts, whose operands are called x, w and y. Parts run
/// one after the other and share their workspace.
template <class Make>
Program program_of(const ConvParts& parts, Make make);

/// Appends the program of `part`; see program_of().
void append_part(Program& result, Program program, const ConvPart& part);

template <class Make>
Program program_of(const ConvParts& parts, Make make) {
  Program result;
  for (const ConvPart& part : parts.list) append_part(result, make(part.conv), part);
  return result;
}

/// The sum of what `predict(conv)` says of the parts.
template <class Predict>
Estimate estimate_of(const ConvParts& parts, Predict predict) {
  Estimate sum;
  for (const ConvPart& part : parts.list) {
    const Estimate estimate = predict(part.conv);
    sum.seconds += estimate.seconds;
    sum.math += estimate.math;
    sum.memory += estimate.memory;
    sum.on_chip += estimate.on_chip;
    sum.overhead += estimate.overhead;
  }
  return sum;
}

}  // namespace kiln::descriptor
