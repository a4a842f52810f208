// Fat binaries: what nvcc puts a program's device code into, for several architectures side by side. cuModuleLoadData
// takes one. NVIDIA documents the container (fatbinary_section.h of the toolkit), not the images' headers.
// Little-endian, and so is every host that this runs on.
#pragma once

#include <cstdint>

namespace cuda_abi {

inline constexpr uint32_t fat_container_magic = 0xBA55ED50, fat_wrapper_magic = 0x466243B1;

/// Handle that nvcc's host code passes around: a pointer to the container.
struct FatWrapper {
  uint32_t magic, version;
  const void* container;
};

struct FatContainerHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  ///< Bytes of the images behind it, one after the other.
};

struct FatImageHeader {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t payload_bytes;  ///< With padding.
  uint32_t compressed_bytes, options_offset;
  uint16_t minor, major;
  uint32_t arch;  ///< Compute capability, 10 x major + minor.
  uint32_t name_offset, name_bytes;
  uint64_t flags, reserved;
  uint64_t unpacked_bytes;  ///< Bytes of a compressed image, unpacked.
};
static_assert(sizeof(FatContainerHeader) == 16 && sizeof(FatImageHeader) == 64);

inline constexpr uint16_t fat_kind_ptx = 1, fat_kind_cubin = 2;
inline constexpr uint64_t fat_flag_64_bit = 0x1, fat_flag_linux = 0x10, fat_flag_lz4 = 0x2000, fat_flag_zstd = 0x8000;

}  // namespace cuda_abi
