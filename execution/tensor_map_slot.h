// The tensor map of one argument of a loaded launch.
#pragma once

#include <cuda_abi/driver.h>

#include <atomic>
#include <cstdint>

#include "kiln/device/driver.h"
#include "kiln/generator/argument.h"

namespace kiln::execution {

/// Encodes the map for the address and the batch of a call, and keeps the latest: networks give a layer the same
/// addresses again and again. Encoding is work of the host alone and enqueues nothing. Thread-safe.
class TensorMapSlot {
 public:
  /// Throws Error(unsupported) if the driver encodes no tensor maps.
  TensorMapSlot(const device::Driver& driver, TensorMapArgument argument);

  /// Writes the map to `map`: GCC 12 does not align what is returned by value. All zeros for the address 0. Throws
  /// Error(invalid_argument) for one that is not a multiple of 16 bytes, DriverError if the driver refuses the map.
  void get(cuda_abi::CUdeviceptr address, int64_t n, cuda_abi::CUtensorMap& map) const;

 private:
  void encode(cuda_abi::CUdeviceptr address, int64_t n, cuda_abi::CUtensorMap& map) const;

  const device::Driver& driver_;
  TensorMapArgument argument_;
  mutable std::atomic_flag busy_;  // guards those below; who finds it set encodes on its own
  mutable cuda_abi::CUtensorMap latest_{};
  mutable cuda_abi::CUdeviceptr latest_address_ = 0;
  mutable int64_t latest_n_ = 0;
};

}  // namespace kiln::execution
