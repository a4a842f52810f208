// Winograd's minimal filtering F(m x m, 3x3) seen from its descriptors: what lib/winograd_tiles.cuh and its users need.
#pragma once

#include <cstdint>
#include <string>

#include "conv/conv_parts.h"

namespace kiln::descriptor {

/// A request of conv_forward or conv_backward_data. Its `list` is the convolution with 1x1 filters that multiplies what
/// the transforms make, a group for each position of a tile and group of the request; nothing if refused.
struct Winograd : ConvParts {
  static Winograd of(const Request& request, int tile);

  int64_t positions() const { return int64_t{tile + 2} * (tile + 2); }
  int64_t tiles_per_image() const;
  const ConvProblem& conv() const { return pass.conv; }

  ConvPart pass;  ///< what is computed, as a forward convolution
  int tile = 0;   ///< m
};

/// The Problem of describe(): F(TILE x TILE, 3x3).
template <int TILE>
struct WinogradOf : Winograd {
  static WinogradOf of(const Request& request) { return {Winograd::of(request, TILE)}; }
};

/// How the transformed filters of one position and group lie in the workspace: c x k of them, those that exist first.
struct FilterBlock {
  int64_t c = 0, k = 0;
  bool c_inner = false;

  int64_t bytes(const Winograd& winograd) const { return winograd.positions() * winograd.conv().groups * c * k * 4; }
};

/// The constants of lib/winograd_tiles.cuh.
Prelude winograd_prelude(const Winograd& winograd, const FilterBlock& filters, bool wide_index);

/// The launch of `entry`, which transforms the filters into the start of the workspace.
Launch filters_launch(std::string entry, const Winograd& winograd, const FilterBlock& filters);

/// Bytes up to the next buffer in a workspace.
int64_t aligned_bytes(int64_t bytes);

}  // namespace kiln::descriptor
