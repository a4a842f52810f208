// One device of a driver, and what identifies it.
#pragma once

#include <cuda_abi/driver.h>

#include <cstddef>
#include <memory>
#include <string>

#include "kiln/device/driver.h"

namespace kiln::device {

/// Properties that a device reports about itself. A value; knows no driver.
struct DeviceInfo {
  std::string name;         ///< e.g. "NVIDIA H200".
  int cc_major = 0;         ///< Compute capability.
  int cc_minor = 0;         ///< Compute capability.
  int sms = 0;              ///< Streaming multiprocessors.
  size_t memory_bytes = 0;  ///< Total device memory.
  int memory_bus_bits = 0;
  int memory_clock_khz = 0;
  int clock_khz = 0;  ///< Highest SM clock.
  int l2_bytes = 0;
  int shared_per_block = 0;           ///< Bytes without opting in.
  int shared_per_block_optin = 0;     ///< Bytes after Function::set_max_dynamic_shared.
  int shared_per_sm = 0;              ///< Bytes.
  int shared_reserved_per_block = 0;  ///< Bytes that the system takes of each block's shared memory.
  int registers_per_block = 0;        ///< 32-bit registers.
  int registers_per_sm = 0;           ///< 32-bit registers.
  int threads_per_block = 0;
  int threads_per_sm = 0;
  int blocks_per_sm = 0;
  int warp_size = 32;
  std::string mig_profile;  ///< "1g.18gb" if the name shows one ("... MIG 1g.18gb"), else empty.
  std::string uuid;         ///< "GPU-xxxxxxxx-xxxx-...": which board, for messages; not part of id().
  bool emulated = false;
  bool reaches_host_memory = false;  ///< Kernels may access any memory of the host (HMM, ATS), as they do the device's.

  /// The DeviceId: one canonical line that is the same for every board, driver and day on which times may be compared,
  /// and differs otherwise. Memory is rounded to GiB, because drivers reserve varying amounts.
  ///
  ///   name="NVIDIA H200" cc=9.0 sms=132 memory=140GiB bus=6144 mig=none clock=1980MHz memory_clock=3201MHz emulated=no
  ///
  /// It is a key of the tuning cache: changing its form makes stored records unreachable.
  std::string id() const;
};

/// A device of `driver`, by ordinal. Copyable; keeps the driver loaded. Safe to use from any thread.
class Device {
 public:
  /// Throws Error(invalid_argument) if there is no such ordinal, DriverError if the device cannot be queried.
  Device(std::shared_ptr<const Driver> driver, int ordinal);

  const std::shared_ptr<const Driver>& driver() const { return driver_; }
  int ordinal() const { return ordinal_; }
  cuda_abi::CUdevice raw() const { return device_; }
  const DeviceInfo& info() const { return info_; }

  /// Any attribute that DeviceInfo does not hold.
  int attribute(cuda_abi::CUdevice_attribute attribute) const;

 private:
  DeviceInfo query() const;

  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  cuda_abi::CUdevice device_ = 0;
  DeviceInfo info_;
};

}  // namespace kiln::device
