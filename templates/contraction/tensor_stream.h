// Contractions on tensor cores whose blocks share the chunks of all tiles evenly: one launch of BLOCKS blocks makes
// parts of the sums, a second one adds them (lib/stream.cuh).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "contraction/contractions.h"
#include "contraction/split_product.h"
#include "contraction/tensor_tiling.h"

namespace kiln::descriptor {

/// Parameters of contractions whose depth is shared: by SPLIT_K blocks for each tile, or by `blocks` for all, if there
/// are any.
struct SharedTiling : SplitTiling<TensorTiling> {
  int blocks;
};

/// The program and the costs of the kernels NAME and NAME_reduce with BLOCKS.
class TensorStream {
 public:
  TensorStream(std::string name, Bring bring) : name_(std::move(name)), bring_(bring) {}

  /// Values of BLOCKS. Most devices have 40 to 170 SMs, and each holds one block or two: on most of them less than a
  /// fifth of the SMs has no block.
  static std::vector<int64_t> numbers_of_blocks() { return {128, 104, 40, 64, 80, 160, 208, 256}; }

  /// Teams of threads that add the parts of a tile.

  /// Fewer tiles than blocks, and enough chunks for all.
  static bool is_worthwhile(const SharedTiling& tiling, const Contractions& parts);
  /// Rule "the parts fit into a gigabyte and a grid".
  bool parts_fit(const SharedTiling& tiling, const Contractions& parts) const;

  Program program(const SharedTiling& tiling, const Contractions& parts, const Target& target,
                  const Emitter& emit) const;
  Estimate predict(const SharedTiling& tiling, const Contractions& parts, const Target& target,
                   const DeviceFigures& device) const;

 private:
  std::array<Count, 3> reduce_grid(const SharedTiling& tiling, const Contractions& parts) const;

  std::string name_;
  Bring bring_;
};

}  // namespace kiln::descriptor
