#include "conv/tensor/patch.h"

#include <algorithm>
#include <numeric>

#include "descriptor/numbers.h"
#include "descriptor/occupancy.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {

std::optional<std::string> patch_type_refusal(DType a, DType b, const Arithmetic& arithmetic, const Target& target) {
  if (!is_floating(a) && !is_floating(b)) {
    if (!target.arch.at_least(8, 0)) return "tensor cores multiply 8-bit integers from sm_80 on";
    return std::nullopt;
  }
  if (size_of(a) == 1 || size_of(b) == 1) return "patches are of integers, or of elements of 16 and 32 bits";
  return tensor_type_refusal(a, b, arithmetic, target);
}

std::optional<std::string> patch_refusal(const SpatialAxes& axes, const std::string& input, int64_t channels,
                                         int64_t groups, int element_bytes) {
  constexpr int64_t most_channels = 16, most_of_groups = 32, longest_reach = 64, most_pieces = 256;
  if (groups == 1 && channels > most_channels) return input + " has more than 16 channels, in one group";
  if (channels > most_of_groups) return "a group has more than 32 channels of " + input;
  if (axes.columns.dilation != 1 && axes.columns.window != 1) return "dilation keeps the taps of a row apart";
  for (const WindowAxis* axis : {&axes.planes, &axes.rows, &axes.columns}) {
    if (axis->reach() > longest_reach || axis->stride > longest_reach) {
      return "windows span, or are apart, more than 64 positions of " + input;
    }
  }
  const int64_t run_bytes = axes.columns.window * patch_pixel_bytes(channels, element_bytes);
  if (axes.planes.window * axes.rows.window * ceil_div(run_bytes, patch_piece_bytes) > most_pieces) {
    return "a filter has too many elements to unroll";
  }
  return std::nullopt;
}

int64_t patch_pixel_bytes(int64_t channels, int element_bytes) {
  constexpr int64_t word = 4;
  return ceil_div(channels * element_bytes, word) * word;
}

int64_t patch_pitch_bytes(int64_t channels, int element_bytes) {
  const int64_t pixel = patch_pixel_bytes(channels, element_bytes);
  return pixel % (16 * element_bytes) == 0 ? pixel + patch_piece_bytes : pixel;
}

PatchStrips::PatchStrips(const TensorSpec& x, int64_t channels_of_group) {
  using namespace dimension;
  constexpr int64_t most_pixels = 8;  // of which the columns of tiles are a multiple
  const int64_t of = std::gcd(x.extents[column], most_pixels);
  // One larger pixel fills an access, and the lanes of a warp then read side by side.
  const bool packed = channels_of_group * size_of(x.dtype) < patch_piece_bytes &&
                      x.extents[channel] == channels_of_group && x.strides[channel] == 1 &&
                      x.strides[column] == channels_of_group;
  pixels = packed                   ? widest_vector(x, {channel, column}, of)
           : x.strides[column] == 1 ? widest_vector(x, {column}, of)
                                    : 1;
  x_run = widest_vector(x, {channel}, channels_of_group);
}

int64_t patch_pixels(const SpatialAxes& axes, const PatchStrips& strips, int p, int q) {
  const int64_t left = (strips.pixels - axes.columns.pad_begin % strips.pixels) % strips.pixels;
  const int64_t columns = left + (q - 1) * axes.columns.stride + axes.columns.window;
  return axes.planes.reach() * ((p - 1) * axes.rows.stride + axes.rows.reach()) * ceil_div(columns, strips.pixels) *
         strips.pixels;
}

int64_t patch_bytes(const SpatialAxes& axes, const PatchStrips& strips, int64_t pitch_bytes, int p, int q) {
  return ceil_div(patch_pixels(axes, strips, p, q) * pitch_bytes, patch_piece_bytes) * patch_piece_bytes;
}

int64_t patch_tiles(const SpatialAxes& axes, int p, int q) {
  return axes.planes.outputs * ceil_div(axes.rows.outputs, p) * ceil_div(axes.columns.outputs, q);
}

int patch_min_blocks(int threads, int registers, int64_t shared_bytes, const Arch& arch) {
  constexpr int64_t reserved = 1024;  // bytes of shared memory of each block
  int blocks = std::min({arch.blocks_per_sm, arch.threads_per_sm / threads,
                         static_cast<int>(arch.shared_per_sm / (shared_bytes + reserved))});
  while (blocks > 1 && registers_with(blocks * threads / 32, arch) < registers) --blocks;
  return std::max(blocks, 1);
}

}  // namespace kiln::descriptor
