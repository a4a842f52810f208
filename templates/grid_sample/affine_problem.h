// Parts that all algorithms of affine_grid and its gradient share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/affine_grid.h"
#include "kiln/generator/program.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// A request as descriptors see it: its grid has three spatial dimensions, whatever the request has.
struct AffineProblem {
  std::string operation;
  int axes = 2;
  TensorSpec theta, grid;  ///< Or their gradients.
  GridEnds ends = GridEnds::edges;
  Blend blend;
  bool dynamic_batch = false;

  static AffineProblem of(const Request& request);

  bool is_gradient() const { return operation == "affine_grid_backward"; }
  int64_t n() const { return theta.extents[0]; }
  int64_t pixels() const { return grid.extents[1] * grid.extents[2] * grid.extents[3]; }  ///< Positions of an image.
  int64_t elements() const { return int64_t{axes} * (axes + 1); }                         ///< Elements of a matrix.
  /// Bytes that have to move: each operand once.
  double bytes() const;
};

/// N,P,Q,2 as N,1,P,Q,2.
TensorSpec grid_with_planes(TensorSpec grid);

/// Constants of lib/affine_grid.cuh, and those of results.
Prelude affine_prelude(const AffineProblem& problem);

/// One launch of `entry` with blocks of `threads`: both operands, `workspace`, alpha, beta, user code and n. The grid
/// is the caller's to set.
Launch affine_launch(const AffineProblem& problem, std::string entry, int threads,
                     const std::vector<WorkspaceArgument>& workspace = {});

/// OPERATION_simple of grid_sample/OPERATION_simple.cu, the trusted kernel of `operation`: a thread takes an element of
/// the result.
Algorithm simple_affine_grid(const std::string& operation);

}  // namespace kiln::descriptor
