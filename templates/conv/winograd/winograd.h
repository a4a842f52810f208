// Winograd's minimal filtering F(m x m, 3x3) seen from its descriptors: what lib/winograd_tiles.cuh and its users need.
#pragma once

#include <cstdint>
#include <string>

#include "contraction/contractions.h"

namespace kiln::descriptor {

/// A request of conv_forward or conv_backward_data by F(tile x tile, 3x3).
struct Winograd {
  /// `make` gives the contractions of the request: there is one, as there are no strides.
  static Winograd of(const Request& request, ContractionMaker make, int tile);

  int64_t positions() const { return int64_t{tile + 2} * (tile + 2); }
  int64_t tiles_per_image() const;

  const ConvolutionAddresses& conv() const { return contraction.addresses; }

  std::optional<std::string> refusal;
  OperandNames operands;    ///< of the request
  Contraction contraction;  ///< what is computed
  /// Product of transformed operands: a convolution with 1x1 filters, with a group for each position of a tile and
  /// group of the request. Nothing if refused.
  Contractions products;
  int tile = 0;           ///< m
  bool prepared = false;  ///< The filters were transformed before: times are without that.
};

/// Contractions for the rules of a tiling (add_simt_space()).
inline const Contractions& contractions_of(const Winograd& winograd) {
  return winograd.products;
}

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

}  // namespace kiln::descriptor
