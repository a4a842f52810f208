// A fake driver whose device memory is host memory and whose kernels are C++ functions: the Checker is tested against
// known bugs with it, red zones included, which the emulator's own checks would forestall.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fake_driver.h"

namespace kiln::checking {

struct HostDriver {
  HostDriver();
  ~HostDriver();
  HostDriver(const HostDriver&) = delete;
  HostDriver& operator=(const HostDriver&) = delete;

  using Kernel = std::function<void(void** parameters)>;

  std::shared_ptr<const device::ContextHandle> context() const { return fake.context(); }

  device::FakeDriver fake;
  std::map<std::string, Kernel> kernels;
  float elapsed_ms = 2;          ///< Between any two events; if negative, the device cannot tell.
  size_t uploaded_bytes = 0;     ///< Copied to the device in streams.
  size_t flushed_bytes = 0;      ///< Filled with zeros.
  size_t free_memory = 1 << 30;  ///< Bytes that allocations may take before they fail.
};

}  // namespace kiln::checking
