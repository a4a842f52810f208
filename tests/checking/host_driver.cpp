#include "host_driver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace kiln::checking {
namespace {

using namespace cuda_abi;

thread_local HostDriver* host = nullptr;

void* memory(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

void add_memory(device::DriverTable& table) {
  table.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t bytes) {
    if (bytes > host->free_memory) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    return CUDA_SUCCESS;
  };
  table.cuMemFree_v2 = [](CUdeviceptr address) {
    std::free(memory(address));
    return CUDA_SUCCESS;
  };
  table.cuMemcpyHtoD_v2 = [](CUdeviceptr to, const void* from, size_t bytes) {
    std::memcpy(memory(to), from, bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemcpyDtoH_v2 = [](void* to, CUdeviceptr from, size_t bytes) {
    std::memcpy(to, memory(from), bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, size_t bytes, CUstream) {
    host->uploaded_bytes += bytes;
    std::memcpy(memory(to), from, bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, size_t bytes, CUstream) {
    std::memcpy(to, memory(from), bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemsetD8Async = [](CUdeviceptr address, unsigned char value, size_t count, CUstream) {
    std::memset(memory(address), value, count);
    return CUDA_SUCCESS;
  };
  table.cuMemsetD32Async = [](CUdeviceptr address, unsigned value, size_t count, CUstream) {
    std::fill_n(static_cast<unsigned*>(memory(address)), count, value);
    if (value == 0) host->flushed_bytes += 4 * count;
    return CUDA_SUCCESS;
  };
}

void add_streams(device::DriverTable& table) {
  table.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
  table.cuStreamCreate = [](CUstream* stream, unsigned) {
    *stream = reinterpret_cast<CUstream>(uint64_t{1});
    return CUDA_SUCCESS;
  };
  table.cuStreamDestroy_v2 = [](CUstream) { return CUDA_SUCCESS; };
  table.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
  table.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(uint64_t{1});
    return CUDA_SUCCESS;
  };
  table.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
  table.cuEventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  table.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  table.cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = host->elapsed_ms;
    return host->elapsed_ms < 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
  };
}

void add_kernels(device::DriverTable& table) {
  table.cuModuleLoadDataEx = [](CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
    *module = reinterpret_cast<CUmodule>(uint64_t{1});
    return CUDA_SUCCESS;
  };
  table.cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  table.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) {
    *function = reinterpret_cast<CUfunction>(&host->kernels.at(name));
    return CUDA_SUCCESS;
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) {
    *value = 0;
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernel = [](CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            CUstream, void** parameters, void**) {
    (*reinterpret_cast<HostDriver::Kernel*>(function))(parameters);
    return CUDA_SUCCESS;
  };
}

}  // namespace

HostDriver::HostDriver() {
  host = this;
  add_memory(fake.table);
  add_streams(fake.table);
  add_kernels(fake.table);
}

HostDriver::~HostDriver() {
  host = nullptr;
}

}  // namespace kiln::checking
