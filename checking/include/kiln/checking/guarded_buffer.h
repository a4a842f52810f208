// Device memory between red zones.
#pragma once

#include <cuda_abi/driver.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "kiln/device/memory.h"

namespace kiln::checking {

/// Where the data of a GuardedBuffer begin.
enum class Placement {
  aligned_no_better,  ///< At an address that is a multiple of the alignment and, if that is below 256, of no more.
  as_allocated,       ///< At a multiple of 256, as tensors of a caller mostly do.
};

/// Memory for one operand or workspace with a pattern before and after it. Move-only.
///
/// On the emulated device there is no zone after data that are aligned_no_better: the allocation ends with them, so
/// that the emulator reports not only writes but also reads beyond them.
class GuardedBuffer {
 public:
  /// The data are aligned_no_better than `alignment`, a power of two: kernels must not rely on more.
  GuardedBuffer(std::shared_ptr<const device::ContextHandle> context, size_t bytes, size_t alignment);

  cuda_abi::CUdeviceptr address() const { return memory_.address() + front_; }
  size_t size() const { return bytes_; }

  /// Moves the data, whose contents and zones are unspecified then.
  void place(Placement placement);

  /// Writes the pattern into the zones.
  void arm(cuda_abi::CUstream stream);
  /// Where the pattern was overwritten, relative to the data: "24 bytes before the start", "8 bytes after the end".
  std::optional<std::string> damage() const;

 private:
  void fill(size_t begin, size_t end, cuda_abi::CUstream stream);

  std::shared_ptr<const device::ContextHandle> context_;
  size_t bytes_;
  size_t shift_;  // bytes that the data begin behind a multiple of 256 if aligned_no_better
  size_t front_;  // bytes before the data, all of them a zone
  device::Buffer memory_;
};

}  // namespace kiln::checking
