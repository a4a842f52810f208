#include "kiln/device/owned_handle.h"

#include <spdlog/spdlog.h>

namespace kiln::device {

void log_failed_release(const Driver& driver, cuda_abi::CUresult result, const char* call) noexcept {
  if (result == cuda_abi::CUDA_ERROR_DEINITIALIZED) return;
  try {
    if (DriverError(result, {}).is_sticky()) return;
    spdlog::warn("{} failed while a handle was released: {}", call, driver.describe(result));
  } catch (...) {
    return;  // no memory for the message: nothing more can be done in a destructor
  }
}

void log_failed_release(const std::exception& error, const char* call) noexcept {
  const auto* const fault = dynamic_cast<const DriverError*>(&error);
  if (fault != nullptr && (fault->is_sticky() || fault->result() == cuda_abi::CUDA_ERROR_DEINITIALIZED)) return;
  try {
    spdlog::warn("a handle was not released by {}: {}", call, error.what());
  } catch (...) {
    return;
  }
}

}  // namespace kiln::device
