// Device memory, and memory of the host that devices reach, for applications that have no CUDA runtime at hand.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kiln/context.h"

namespace kiln {

/// An allocation on a Context's device, freed at the end. Move-only; keeps the device's driver and context alive. One
/// that was moved from refuses every call with Error(invalid_argument), until another is assigned to it.
///
/// Kiln takes any device pointer; this is a convenience for examples, tests and programs that run on the emulated
/// device too.
class DeviceMemory {
 public:
  /// `bytes` of device memory, 256-byte aligned, contents unspecified. Throws Error(out_of_memory),
  /// Error(driver_error).
  DeviceMemory(Context& context, size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;

  void* data() const;
  size_t size() const;

  /// Copies to the start of the memory; has finished when it returns, in order with the default stream. Throws
  /// Error(invalid_argument) if `bytes` are more than size(), Error(driver_error).
  void upload(std::span<const std::byte> bytes);
  /// Copies from the start of the memory, as upload().
  void download(std::span<std::byte> bytes) const;

 private:
  struct Impl;
  Impl& present() const;
  std::unique_ptr<Impl> impl_;
};

/// Memory of the host that the device reaches while this lives: pinned and registered with CUDA, as cudaHostRegister
/// does. Calls take its addresses without a copy. Move-only; keeps the device's driver and context alive.
///
/// On a GPU every access crosses the host link, and registering takes longer than many a layer. On the emulated device,
/// whose memory is the host's, it costs next to nothing, and kernels may touch exactly these bytes.
class RegisteredMemory {
 public:
  /// `bytes` from `data`: the caller's, for as long as this lives and work that was enqueued uses them. Throws
  /// Error(invalid_argument) for null or no bytes, Error(driver_error) where some of them are registered already.
  RegisteredMemory(Context& context, void* data, size_t bytes);
  ~RegisteredMemory();
  RegisteredMemory(RegisteredMemory&&) noexcept;
  RegisteredMemory& operator=(RegisteredMemory&&) noexcept;

  /// Waits until the device has done all that was enqueued, and ends the registration, as the destructor does without a
  /// word. Throws DriverError for a fault of that work.
  void release();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln
