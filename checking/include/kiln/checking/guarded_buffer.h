// Device memory between red zones.
#pragma once

#include <cuda_abi/driver.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "kiln/device/memory.h"

namespace kiln::checking {

/// Memory for one operand or workspace with a pattern before and after it. Move-only.
///
/// On the emulated device there is no zone after it: the allocation ends with the data, so that the emulator reports
/// not only writes but also reads beyond it.
class GuardedBuffer {
 public:
  /// `alignment`: the address is a multiple of this and, if below 256, of no more: kernels must not rely on more.
  GuardedBuffer(std::shared_ptr<const device::ContextHandle> context, size_t bytes, size_t alignment);

  cuda_abi::CUdeviceptr address() const { return memory_.address() + front_; }
  size_t size() const { return bytes_; }

  /// Writes the pattern into the zones.
  void arm(cuda_abi::CUstream stream);
  /// Where the pattern was overwritten, relative to the data: "24 bytes before the start", "8 bytes after the end".
  std::optional<std::string> damage() const;

 private:
  std::shared_ptr<const device::ContextHandle> context_;
  size_t bytes_;
  size_t front_;  // bytes before the data
  size_t gap_;    // bytes between the data and the zone after it, part of the zone but written byte by byte
  size_t back_;   // bytes of the zone after that, a multiple of 4
  device::Buffer memory_;
};

}  // namespace kiln::checking
