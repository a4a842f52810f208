// Device memory, and host memory that devices reach, for applications without the CUDA runtime.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kiln/context.h"

namespace kiln {

/// An allocation on a Context's device, freed by the destructor. Move-only; keeps the device's driver and context
/// alive. A moved-from object refuses every call with Error(invalid_argument), until another is assigned to it.
///
/// Kiln takes any device pointer. This class is a convenience for examples, tests and programs that run on the emulated
/// device too.
class DeviceMemory {
 public:
  /// Allocates `bytes` of device memory, 256-byte aligned, contents unspecified. Throws Error(out_of_memory),
  /// Error(driver_error).
  DeviceMemory(Context& context, size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;

  void* data() const;
  size_t size() const;

  /// Copies `bytes` to the start of the memory, in order with the default stream, and waits for the copy. Throws
  /// Error(invalid_argument) for more than size() bytes, Error(driver_error).
  void upload(std::span<const std::byte> bytes);
  /// Fills `bytes` from the start of the memory, in order and with errors as upload().
  void download(std::span<std::byte> bytes) const;

 private:
  struct Impl;
  Impl& present() const;
  std::unique_ptr<Impl> impl_;
};

/// Host memory that the device reaches while this object lives: pinned and registered with CUDA, as by
/// cudaHostRegister. Calls take its addresses without a copy. Move-only; keeps the device's driver and context alive.
///
/// On a GPU every access crosses the host link, and registering takes longer than many a layer. On the emulated device,
/// whose memory is the host's, registering costs next to nothing, and kernels may touch exactly these bytes.
class RegisteredMemory {
 public:
  /// Registers `bytes` bytes at `data`, which must exist as long as this object, and as long as enqueued work uses
  /// them. Throws Error(invalid_argument) for null or no bytes, Error(driver_error) if some of them are registered
  /// already.
  RegisteredMemory(Context& context, void* data, size_t bytes);
  ~RegisteredMemory();
  RegisteredMemory(RegisteredMemory&&) noexcept;
  RegisteredMemory& operator=(RegisteredMemory&&) noexcept;

  /// Waits until the device has done all enqueued work, and ends the registration. Throws DriverError for a fault of
  /// that work. The destructor does the same, but throws nothing.
  void release();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln
