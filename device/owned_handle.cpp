#include "kiln/device/owned_handle.h"

#include <cstdio>
#include <string_view>

namespace kiln::device {
namespace {

/// To standard error: standard output belongs to the application.
void warn(const char* call, std::string_view reason) noexcept {
  std::fprintf(stderr, "kiln: %s failed while a handle was released: %.*s\n", call, static_cast<int>(reason.size()),
               reason.data());
}

bool expected(cuda_abi::CUresult result) {
  return loses_context(result) || result == cuda_abi::CUDA_ERROR_DEINITIALIZED;
}

}  // namespace

void log_failed_release(const Driver& driver, cuda_abi::CUresult result, const char* call) noexcept {
  if (expected(result)) return;
  try {
    warn(call, driver.describe(result));
  } catch (...) {
    return;  // no memory for the text
  }
}

void log_failed_release(const std::exception& error, const char* call) noexcept {
  const auto* const fault = dynamic_cast<const DriverError*>(&error);
  if (fault == nullptr || !expected(fault->result())) warn(call, error.what());
}

}  // namespace kiln::device
