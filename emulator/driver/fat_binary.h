// Reading fat binaries (cuda_abi/fat_binary.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::emulator {

/// One image of a fat binary.
struct FatImage {
  bool is_ptx = false;  ///< else a cubin, or something else that is no text
  uint32_t arch = 0;    ///< compute capability, 10 x major + minor
  std::string content;  ///< the text, or the cubin's bytes; empty if it cannot be had
  std::string refusal;  ///< why not
};

/// Whether `image` begins as a fat binary does, or as the wrapper that nvcc's host code passes around. `bytes` can be
/// read of it.
bool is_fat_binary(const void* image, size_t bytes);

/// Its images in their order. `bytes` can be read: SIZE_MAX for an image in memory, whose header says how long it is.
/// Throws ImageRefused if it is cut off or damaged.
std::vector<FatImage> read_fat_binary(const void* image, size_t bytes);

}  // namespace kiln::emulator
