// Parts that descriptors of grid_sample and its gradients share.
#pragma once

#include <string>
#include <vector>

#include "descriptor/numbers.h"
#include "descriptor/strided.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/grid_sample.h"

namespace kiln::descriptor {

/// A request as descriptors see it: its operands have three spatial dimensions, whatever the request has.
struct GridProblem : GridSampling {
  std::string operation;
  int axes = 2;
  TensorSpec image, sampled, grid, dgrid;  ///< x or dx, y or dy. dgrid without extents where there is none.
  std::vector<std::string> names;          ///< Operands in the order of the operation.

  static GridProblem of(const Request& request);

  int64_t n() const { return image.extents[dimension::batch]; }
  int64_t c() const { return image.extents[dimension::channel]; }
  int64_t pixels() const {
    return sampled.extents[2] * sampled.extents[3] * sampled.extents[4];
  }  ///< Positions of an image.
  int64_t elements() const {
    return image.extents[2] * image.extents[3] * image.extents[4];
  }  ///< Elements of a channel.
  /// Elements of x that an output is made of.
  int64_t taps() const;
  /// Bits of the largest term of a sum for dx (lib/exact_sum.cuh), and whether they suffice.
  int64_t sum_bits() const;
  bool has_sum_bits() const { return sum_bits() >= descriptor::least_sum_bits; }
  /// Bytes that have to move: each operand once.
  double bytes() const;
};

/// Constants of lib/grid_sample.cuh, and those of results.
Prelude grid_prelude(const GridProblem& problem);

/// One launch of `entry` with blocks of `threads`: all operands, `workspace`, alpha, beta, user code and n. The grid is
/// the caller's to set.
Launch grid_launch(const GridProblem& problem, std::string entry, int threads,
                   const std::vector<WorkspaceArgument>& workspace = {});

/// Threads that take a pixel: `lanes` side by side, each of them `channels` at a time.
struct GridPixelShape {
  int threads = 0, lanes = 1, channels = 1;
};
/// Constants of it.
void add_grid_pixels(Prelude& prelude, const GridPixelShape& shape);
/// The grid of a launch by pixels, and by channels if threads take some of them.
void lay_out_pixels(const GridPixelShape& shape, const GridProblem& problem, bool by_channels, Launch& launch);
/// Whether all lanes have channels, and neighbours in memory where that is possible.
bool grid_lanes_have_work(const GridPixelShape& shape, const GridProblem& problem, const Target& target);
/// Whether a configuration has an open kernel, of those whose lanes have work: few kernels for all sizes.
bool opens_grid_pixels(const GridPixelShape& shape, const GridProblem& problem, const Target& target);
/// Time of `passes` launches by pixels, each of which loads an element for each tap, or adds to one.
Estimate predict_grid_pixels(const GridPixelShape& shape, const GridProblem& problem, bool by_channels, double passes,
                             const Target& target, const DeviceFigures& device);

/// OPERATION_simple of grid_sample/OPERATION_simple.cu, the trusted kernel of `operation`: a thread takes an element of
/// the result.
Algorithm simple_grid_sample(const std::string& operation);

}  // namespace kiln::descriptor
