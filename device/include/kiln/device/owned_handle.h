// Ownership of one driver handle: what Buffer, Stream, Event and Module are built on.
#pragma once

#include <cuda_abi/driver.h>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "kiln/device/context.h"

namespace kiln::device {

/// Reports a handle that could not be released, on the log: destructors never throw. Silent where that is expected: the
/// driver is shutting down, the context is gone, or an earlier fault, reported when it happened, has broken it. Written
/// to standard error.
void log_failed_release(const Driver& driver, cuda_abi::CUresult result, const char* call) noexcept;
void log_failed_release(const std::exception& error, const char* call) noexcept;

/// A handle with the context it lives in, released in that context at the end. Move-only; a null handle owns nothing.
template <typename Handle>
class OwnedHandle {
 public:
  /// The entry point that releases a handle.
  using Release = cuda_abi::CUresult (*DriverTable::*)(Handle);
  /// Whether the handle is an address.
  static constexpr bool is_memory = std::is_same_v<Handle, cuda_abi::CUdeviceptr> || std::is_same_v<Handle, void*>;

  OwnedHandle() = default;
  OwnedHandle(std::shared_ptr<const ContextHandle> context, Handle handle, Release release, const char* call)
      : context_(std::move(context)), handle_(handle), release_(release), call_(call) {}

  OwnedHandle(OwnedHandle&& other) noexcept { *this = std::move(other); }
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    if (this == &other) return *this;
    reset();
    context_ = std::move(other.context_);
    handle_ = std::exchange(other.handle_, Handle{});
    release_ = other.release_;
    call_ = other.call_;
    return *this;
  }
  ~OwnedHandle() { reset(); }

  Handle get() const { return handle_; }
  const std::shared_ptr<const ContextHandle>& context() const { return context_; }

 private:
  void reset() noexcept {
    if (handle_ == Handle{}) return;
    if constexpr (is_memory) context_->forget_memory();
    try {
      const BesideCaptures beside(context_->driver());
      const cuda_abi::CUresult result = context_->call(release_, handle_);
      if (result != cuda_abi::CUDA_SUCCESS) log_failed_release(context_->driver(), result, call_);
    } catch (const std::exception& error) {
      log_failed_release(error, call_);
    }
    handle_ = Handle{};
  }

  std::shared_ptr<const ContextHandle> context_;
  Handle handle_{};
  Release release_ = nullptr;
  const char* call_ = "";
};

}  // namespace kiln::device
