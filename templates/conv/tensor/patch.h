// The shared parts of the descriptors of lib/patch.cuh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "contraction/tensor_tiling.h"
#include "descriptor/window.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/tensor_spec.h"

namespace kiln::descriptor {

constexpr int64_t patch_piece_bytes = 16;  ///< of shared memory, that fragments are made of

/// Why no patch can serve factors of these types; nothing if one can.
std::optional<std::string> patch_type_refusal(DType a, DType b, const Arithmetic& arithmetic, const Target& target);

/// Why no patch of the operand `input` can serve `groups` of `channels` elements of `element_bytes` each and these
/// windows; nothing if one can. Of one group, more than 16 channels fill chunks of an ordinary tile; of several they
/// come from pixels far apart.
std::optional<std::string> patch_refusal(const SpatialAxes& axes, const std::string& input, int64_t channels,
                                         int64_t groups, int element_bytes);

/// Bytes of a pixel of a patch, and from one to the next.
int64_t patch_pixel_bytes(int64_t channels, int element_bytes);
int64_t patch_pitch_bytes(int64_t channels, int element_bytes);
/// Neighbouring pixels of x (N C D H W) that are loaded together, and how many channels of one at a time if it is one.
struct PatchStrips {
  int pixels, x_run;

  PatchStrips(const TensorSpec& x, int64_t channels_of_group);
};
/// Pixels of the patch of a tile of p x q outputs.
int64_t patch_pixels(const SpatialAxes& axes, const PatchStrips& strips, int p, int q);
/// Its bytes in shared memory.
int64_t patch_bytes(const SpatialAxes& axes, const PatchStrips& strips, int64_t pitch_bytes, int p, int q);
/// Tiles of p x q outputs in an image.
int64_t patch_tiles(const SpatialAxes& axes, int p, int q);

/// Blocks of `threads` that an SM should hold: a bound on registers for the compiler.
int patch_min_blocks(int threads, int registers, int64_t shared_bytes, const Arch& arch);

}  // namespace kiln::descriptor
