// A driver that is the emulator but for a few entry points, which count their calls, and fail or do nothing if asked
// to: load kiln_watched_driver as a driver library, and find its watch by name. In another process the variable
// SPOILED_DOWNLOAD asks for a wrong element: "2:5" adds 1 to float 5 of the second download.
#pragma once

#include <cuda_abi/driver.h>
#include <dlfcn.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace kiln::testing_support {

struct DriverWatch {
  std::atomic<int> kernels = 0;   ///< Launches of one, into captures too.
  std::atomic<int> graphs = 0;    ///< Launches of one.
  std::atomic<int> captures = 0;  ///< Captures that began.
  std::atomic<int> pushes = 0;    ///< Contexts that were made current by cuCtxPushCurrent.
  /// Whether kernels were launched since somebody last waited by a copy to the host.
  std::atomic<bool> unfinished = false;
  /// Results of these calls, which then do nothing.
  std::atomic<cuda_abi::CUresult> kernel_fails = cuda_abi::CUDA_SUCCESS, capture_fails = cuda_abi::CUDA_SUCCESS,
                                  instantiation_fails = cuda_abi::CUDA_SUCCESS, graph_fails = cuda_abi::CUDA_SUCCESS;
  /// Kernels and graphs are counted, and not executed.
  std::atomic<bool> idle = false;
};

/// Watch of the driver library at `path`, which stays loaded.
inline DriverWatch& watch_of(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* const found = library == nullptr ? nullptr : dlsym(library, "kiln_driver_watch");
  if (found == nullptr) throw std::runtime_error(path + " is no watched driver");
  return *reinterpret_cast<DriverWatch* (*)()>(found)();
}

}  // namespace kiln::testing_support
