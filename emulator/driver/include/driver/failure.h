// How a driver call fails inside the emulator, and how that becomes a result code at its boundary.
#pragma once

#include <cuda_abi/driver.h>

#include <new>

#include "kiln/base/no_cancellation.h"

namespace kiln::emulator {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the emulator speaks the ABI's names throughout

/// CUDA_ERROR_FILE_NOT_FOUND, which the loading side has no use for.
inline constexpr auto file_not_found = static_cast<CUresult>(301);
/// CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, the same.
inline constexpr auto cooperative_launch_too_large = static_cast<CUresult>(720);

/// Ends a driver call with `code`. Never leaves the library.
struct CallFailed {
  CUresult code = CUDA_ERROR_UNKNOWN;
};

[[noreturn]] inline void fail(CUresult code) {
  throw CallFailed{code};
}

/// Ends the call with `code` unless `condition` holds.
inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) fail(code);
}

/// Runs the body of an entry point that calls nothing where a thread can be cancelled: nothing that waits, but for a
/// mutex, and no file. entry() costs twice as much as these bodies.
template <typename Body>
CUresult quick_entry(Body&& body) noexcept {
  try {
    body();
    return CUDA_SUCCESS;
  } catch (const CallFailed& failure) {
    return failure.code;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// Runs the body of one entry point; nothing it throws crosses the C boundary. A thread that is cancelled meanwhile
/// ends after the call.
template <typename Body>
CUresult entry(Body&& body) noexcept {
  const NoCancellation whole;
  return quick_entry(body);
}

}  // namespace kiln::emulator
