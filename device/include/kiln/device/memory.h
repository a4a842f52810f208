// Device memory, pinned host memory, and copies between them.
#pragma once

#include <cuda_abi/driver.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/device/context.h"
#include "kiln/device/owned_handle.h"

namespace kiln::device {

/// An allocation of device memory, at least 256-byte aligned. Contents are unspecified. Move-only.
///
/// Freeing waits for the device to be idle, as cuMemFree does.
class Buffer {
 public:
  /// Nothing: address 0, size 0.
  Buffer() = default;
  /// `bytes` of device memory; 0 allocates nothing. Throws DriverError(out_of_memory), naming the size and what is
  /// free.
  Buffer(std::shared_ptr<const ContextHandle> context, size_t bytes);

  cuda_abi::CUdeviceptr address() const { return memory_.get(); }
  size_t size() const { return address() == 0 ? 0 : bytes_; }

 private:
  OwnedHandle<cuda_abi::CUdeviceptr> memory_;
  size_t bytes_ = 0;
};

/// Pinned host memory: asynchronous copies from and to it do not block the host. Move-only.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(std::shared_ptr<const ContextHandle> context, size_t bytes);

  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  size_t size() const { return data() == nullptr ? 0 : bytes_; }

 private:
  OwnedHandle<void*> memory_;
  size_t bytes_ = 0;
};

/// Memory of the application's own, registered with the driver while this lives: the device reaches it. Move-only.
class RegisteredRange {
 public:
  RegisteredRange() = default;
  /// `bytes` (more than 0) from `data`. Throws DriverError, where a part of them is registered already too.
  RegisteredRange(std::shared_ptr<const ContextHandle> context, void* data, size_t bytes);

  /// Not of one that was made of nothing.
  const ContextHandle& context() const { return *memory_.context(); }

 private:
  OwnedHandle<void*> memory_;
};

// Copies without a stream have finished when they return. They are ordered with the default stream only: wait for other
// streams first. Copies and fills on a stream return at once; the host side must stay valid until the stream has passed
// them. Zero bytes is a legal no-op. All throw DriverError.

void copy_to_device(const ContextHandle& context, cuda_abi::CUdeviceptr to, const void* from, size_t bytes);
void copy_to_host(const ContextHandle& context, void* to, cuda_abi::CUdeviceptr from, size_t bytes);

void copy_to_device(const ContextHandle& context, cuda_abi::CUdeviceptr to, const void* from, size_t bytes,
                    cuda_abi::CUstream stream);
void copy_to_host(const ContextHandle& context, void* to, cuda_abi::CUdeviceptr from, size_t bytes,
                  cuda_abi::CUstream stream);
void copy_on_device(const ContextHandle& context, cuda_abi::CUdeviceptr to, cuda_abi::CUdeviceptr from, size_t bytes,
                    cuda_abi::CUstream stream);

/// Sets `count` bytes.
void fill_bytes(const ContextHandle& context, cuda_abi::CUdeviceptr address, uint8_t value, size_t count,
                cuda_abi::CUstream stream);
/// Sets `count` 32-bit words; `address` must be 4-byte aligned.
void fill_words(const ContextHandle& context, cuda_abi::CUdeviceptr address, uint32_t value, size_t count,
                cuda_abi::CUstream stream);

/// A new buffer holding a copy of `values`.
template <typename T>
Buffer upload(std::shared_ptr<const ContextHandle> context, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  Buffer buffer(context, values.size_bytes());
  copy_to_device(*context, buffer.address(), values.data(), values.size_bytes());
  return buffer;
}

template <typename T>
Buffer upload(std::shared_ptr<const ContextHandle> context, const std::vector<T>& values) {
  return upload(std::move(context), std::span<const T>(values));
}

/// The first `count` elements of device memory at `address`.
template <typename T>
std::vector<T> download(const ContextHandle& context, cuda_abi::CUdeviceptr address, size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(count);
  copy_to_host(context, values.data(), address, count * sizeof(T));
  return values;
}

}  // namespace kiln::device
