#include "driver_watch.h"

#include <atomic>
#include <cstdlib>

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): entry points spell their types unqualified
using kiln::testing_support::DriverWatch;

namespace {

DriverWatch& watch() {
  static DriverWatch one;
  return one;
}

/// Adds 1 to a float of a download, if SPOILED_DOWNLOAD says so: "2:5" is element 5 of the second one.
void spoil(void* downloaded, size_t bytes) {
  static std::atomic<long> downloads = 0;
  const char* const which = std::getenv("SPOILED_DOWNLOAD");
  char* end = nullptr;
  if (which == nullptr || std::strtol(which, &end, 10) != ++downloads) return;
  const auto offset = sizeof(float) * std::strtoul(end + 1, nullptr, 10);
  if (offset + sizeof(float) <= bytes) *reinterpret_cast<float*>(static_cast<char*>(downloaded) + offset) += 1;
}

/// The emulator's entry point of that name.
template <class Entry>
Entry* next(const char* name) {
  return reinterpret_cast<Entry*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

DriverWatch* kiln_driver_watch() {
  return &watch();
}

#define KILN_NEXT(name) (*next<decltype(name)>(#name))

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ++watch().pushes;
  return KILN_NEXT(cuCtxPushCurrent_v2)(context);
}

// NOLINTNEXTLINE(readability-function-size): as the driver has it
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,
                        void** extra) {
  ++watch().kernels;
  watch().unfinished = true;
  if (watch().kernel_fails != CUDA_SUCCESS) return watch().kernel_fails;
  if (watch().idle) return CUDA_SUCCESS;
  return KILN_NEXT(cuLaunchKernel)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                                   parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  ++watch().kernels;
  watch().unfinished = true;
  if (watch().kernel_fails != CUDA_SUCCESS) return watch().kernel_fails;
  if (watch().idle) return CUDA_SUCCESS;
  return KILN_NEXT(cuLaunchKernelEx)(config, function, parameters, extra);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  watch().unfinished = false;
  const CUresult result = KILN_NEXT(cuMemcpyDtoH_v2)(to, from, bytes);
  spoil(to, bytes);
  return result;
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  const CUresult result = KILN_NEXT(cuMemcpyDtoHAsync_v2)(to, from, bytes, stream);
  spoil(to, bytes);
  return result;
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream) {
  if (watch().idle) return CUDA_SUCCESS;
  return KILN_NEXT(cuMemsetD32Async)(address, value, count, stream);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  if (watch().capture_fails != CUDA_SUCCESS) return watch().capture_fails;
  ++watch().captures;
  return KILN_NEXT(cuStreamBeginCapture_v2)(stream, mode);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  if (watch().instantiation_fails != CUDA_SUCCESS) return watch().instantiation_fails;
  return KILN_NEXT(cuGraphInstantiateWithFlags)(executable, graph, flags);
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  ++watch().graphs;
  if (watch().graph_fails != CUDA_SUCCESS) return watch().graph_fails;
  if (watch().idle) return CUDA_SUCCESS;
  return KILN_NEXT(cuGraphLaunch)(executable, stream);
}

#undef KILN_NEXT
}
