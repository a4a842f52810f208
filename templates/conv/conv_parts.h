// The passes of a convolution as forward convolutions: what one machinery of kernels serves them all with.
//
// - conv_forward is one.
// - The gradient by x of a convolution with unit stride is the convolution of dy with the mirrored filter, C and K of w
//   swapped. With a stride, the elements of dx fall into classes: those whose position h + pad leaves the same
//   remainder divided by the stride meet the same taps, which are evenly spaced, so each class is a convolution of dy
//   with some of the taps. A class that meets none is a convolution of which nothing is multiplied. All classes are
//   computed by one launch (lib/class_blocks.cuh): they read the same dy, and write neighbouring elements of dx. There
//   is code for each, so more than 16 take a launch for every 16.
// - The gradient by w is the convolution of x, N and C swapped, with dy as the filter: its stride is the dilation, and
//   the other way round.
// - A matrix product is the convolution of one row of pixels with filters of one tap (gemm/gemm_parts.h).
//
// Of a local convolution the same holds for each region: of the forward pass the pixels are divided, of the gradient by
// w, where outputs are taps, the taps are. Of the gradient by x the inputs are: filters depend on the tap besides the
// pixel (lib/segments.cuh).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "conv/conv_problem.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"

namespace kiln::descriptor {

/// What the blocks of one class compute of a request.
struct ConvPart {
  ConvProblem conv;
  std::string x, w, y;  ///< what the request calls the operands of `conv`
};

/// A convolution with parameters of `pass`, of which it may be a gradient, and without operands.
ConvProblem problem_of(const ConvPass& pass);

/// Gives each region of `conv` blocks of its own, which make the region's pixels of y with the region's filters. Those
/// are `region_stride` elements apart in w.
void divide_pixels(ConvProblem& conv, int64_t region_stride);

/// A request of conv_forward, conv_backward_data or conv_backward_filter, of a local convolution or its gradients, or
/// of gemm.
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

/// `program`, whose operands are called x, w and y, with the request's names for those of `part`.
Program with_operands_of(const ConvPart& part, Program program);

/// The launches that the parts are divided among.
int64_t launches_of(const ConvParts& parts);

/// `launches`, whose grids are grid_of() all parts, as often as these take, each with the source of its part of
/// `preludes`.
Program divided(const std::vector<Prelude>& preludes, const std::vector<Launch>& launches, const Emitter& emit);

/// The program whose launches compute all parts, from sources that `make_prelude(conv)` specialises for each of them.
template <class MakePrelude>
Program program_of(const ConvParts& parts, const Emitter& emit, const std::vector<Launch>& launches,
                   MakePrelude make_prelude) {
  std::vector<Prelude> preludes;
  for (const ConvPart& part : parts.list) preludes.push_back(make_prelude(part.conv));
  return with_operands_of(parts.list.front(), divided(preludes, launches, emit));
}

/// Whether `a` is the larger count at any batch; both depend on it, or neither does.
bool is_larger(const Count& a, const Count& b);

/// The grid of a launch for all parts, where a launch for one of them alone has the grid `make_grid(conv)`: in y there
/// are as many blocks as all need, else as many as one of them does.
template <class MakeGrid>
std::array<Count, 3> grid_of(const ConvParts& parts, MakeGrid make_grid) {
  std::array<Count, 3> grid = make_grid(parts.main());
  for (const ConvPart& part : parts.list) {
    const std::array<Count, 3> needed = make_grid(part.conv);
    for (size_t i = 0; i < grid.size(); ++i) {
      if (is_larger(needed[i], grid[i])) grid[i] = needed[i];
    }
  }
  grid[1].fixed *= static_cast<int64_t>(parts.list.size());
  return grid;
}

/// Whether a grid has no more blocks than a launch may, counted as lib/class_blocks.cuh counts them.
bool grid_fits(const std::array<Count, 3>& grid, const ConvParts& parts);

}  // namespace kiln::descriptor
