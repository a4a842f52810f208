// Every function that libkiln_emulator.so exports.
//
// The lists that the loading side uses (cuda_abi) are declared straight from it: a definition with another signature
// does not compile, and a missing one does not link. The list here is what programs built with NVIDIA's own headers,
// NVRTC included, call besides; the rest of those headers' names is in other_entry_points.h.
#pragma once

#include <type_traits>

#include "driver/failure.h"

namespace kiln::emulator {

/// CUctxCreateParams: which share of a device a context may use, and what it shares with graphics.
struct CtxCreateParams {
  void* affinities;
  int affinity_count;
  void* graphics;
};

/// CUDA_KERNEL_NODE_PARAMS_v2: what programs built with the headers of CUDA 12 and later pass.
struct KernelNodeParamsV2 {
  CUDA_KERNEL_NODE_PARAMS first;
  void* kernel;
  CUcontext context;
};

// X(symbol, result(parameters)), as in cuda_abi/driver.h.
#define KILN_EMULATOR_EXTRA_ENTRY_POINTS(X)                                                                          \
  X(cuDeviceGetUuid, CUresult(CUuuid* uuid, CUdevice device))                                                        \
  X(cuDevicePrimaryCtxRelease, CUresult(CUdevice device))                                                            \
  X(cuDevicePrimaryCtxReset_v2, CUresult(CUdevice device))                                                           \
  X(cuDevicePrimaryCtxGetState, CUresult(CUdevice device, unsigned* flags, int* active))                             \
  X(cuDevicePrimaryCtxSetFlags_v2, CUresult(CUdevice device, unsigned flags))                                        \
  X(cuCtxCreate_v2, CUresult(CUcontext* context, unsigned flags, CUdevice device))                                   \
  X(cuCtxCreate_v4, CUresult(CUcontext* context, CtxCreateParams* parameters, unsigned flags, CUdevice device))      \
  X(cuCtxCreate_v3,                                                                                                  \
    CUresult(CUcontext* context, void* affinities, int affinity_count, unsigned flags, CUdevice device))             \
  X(cuCtxGetDevice_v2, CUresult(CUdevice* device, CUcontext context))                                                \
  X(cuCtxSynchronize_v2, CUresult(CUcontext context))                                                                \
  X(cuCtxDestroy_v2, CUresult(CUcontext context))                                                                    \
  X(cuCtxGetApiVersion, CUresult(CUcontext context, unsigned* version))                                              \
  X(cuModuleLoadData, CUresult(CUmodule* module, const void* image))                                                 \
  X(cuModuleLoad, CUresult(CUmodule* module, const char* path))                                                      \
  X(cuModuleLoadFatBinary, CUresult(CUmodule* module, const void* image))                                            \
  X(cuOccupancyMaxPotentialBlockSize,                                                                                \
    CUresult(int* blocks, int* block_size, CUfunction function, size_t (*shared_bytes_of)(int block_size),           \
             size_t dynamic_shared_bytes, int block_size_limit))                                                     \
  X(cuOccupancyMaxPotentialBlockSizeWithFlags,                                                                       \
    CUresult(int* blocks, int* block_size, CUfunction function, size_t (*shared_bytes_of)(int block_size),           \
             size_t dynamic_shared_bytes, int block_size_limit, unsigned flags))                                     \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                                            \
    CUresult(int* blocks, CUfunction function, int block_size, size_t dynamic_shared_bytes, unsigned flags))         \
  X(cuMemAllocHost_v2, CUresult(void** pointer, size_t bytes))                                                       \
  X(cuMemHostRegister_v2, CUresult(void* pointer, size_t bytes, unsigned flags))                                     \
  X(cuMemHostUnregister, CUresult(void* pointer))                                                                    \
  X(cuMemHostGetDevicePointer_v2, CUresult(CUdeviceptr* address, void* pointer, unsigned flags))                     \
  X(cuMemcpy, CUresult(CUdeviceptr destination, CUdeviceptr source, size_t bytes))                                   \
  X(cuMemcpyAsync, CUresult(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream))             \
  X(cuMemcpyDtoD_v2, CUresult(CUdeviceptr destination, CUdeviceptr source, size_t bytes))                            \
  X(cuMemsetD8_v2, CUresult(CUdeviceptr address, unsigned char value, size_t count))                                 \
  X(cuMemsetD16_v2, CUresult(CUdeviceptr address, unsigned short value, size_t count))                               \
  X(cuMemsetD16Async, CUresult(CUdeviceptr address, unsigned short value, size_t count, CUstream stream))            \
  X(cuMemsetD32_v2, CUresult(CUdeviceptr address, unsigned value, size_t count))                                     \
  X(cuStreamCreateWithPriority, CUresult(CUstream* stream, unsigned flags, int priority))                            \
  X(cuStreamGetFlags, CUresult(CUstream stream, unsigned* flags))                                                    \
  X(cuEventRecordWithFlags, CUresult(CUevent event, CUstream stream, unsigned flags))                                \
  X(cuEventElapsedTime_v2, CUresult(float* milliseconds, CUevent start, CUevent end))                                \
  X(cuLaunchCooperativeKernel,                                                                                       \
    CUresult(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,               \
             unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream, void** parameters)) \
  X(cuGraphKernelNodeGetParams_v2, CUresult(CUgraphNode node, KernelNodeParamsV2* parameters))                       \
  X(cuGraphExecKernelNodeSetParams_v2,                                                                               \
    CUresult(CUgraphExec executable, CUgraphNode node, const KernelNodeParamsV2* parameters))                        \
  X(cuGraphUpload, CUresult(CUgraphExec executable, CUstream stream))                                                \
  X(cuGetExportTable, CUresult(const void** table, const CUuuid* id))                                                \
  X(cuGetProcAddress, CUresult(const char* symbol, void** function, int version, uint64_t flags))                    \
  X(cuGetProcAddress_v2, CUresult(const char* symbol, void** function, int version, uint64_t flags, int* status))

// X(symbol, suffix): the variants for a default stream of each thread, which have the signature of `symbol`.
#define KILN_EMULATOR_PER_THREAD_ENTRY_POINTS(X) \
  X(cuEventRecordWithFlags, _ptsz)               \
  X(cuEventRecord, _ptsz)                        \
  X(cuGraphLaunch, _ptsz)                        \
  X(cuGraphUpload, _ptsz)                        \
  X(cuLaunchCooperativeKernel, _ptsz)            \
  X(cuLaunchKernelEx, _ptsz)                     \
  X(cuLaunchKernel, _ptsz)                       \
  X(cuMemcpyAsync, _ptsz)                        \
  X(cuMemcpyDtoDAsync_v2, _ptsz)                 \
  X(cuMemcpyDtoD_v2, _ptds)                      \
  X(cuMemcpyDtoHAsync_v2, _ptsz)                 \
  X(cuMemcpyDtoH_v2, _ptds)                      \
  X(cuMemcpyHtoDAsync_v2, _ptsz)                 \
  X(cuMemcpyHtoD_v2, _ptds)                      \
  X(cuMemcpy, _ptds)                             \
  X(cuMemsetD16Async, _ptsz)                     \
  X(cuMemsetD16_v2, _ptds)                       \
  X(cuMemsetD32Async, _ptsz)                     \
  X(cuMemsetD32_v2, _ptds)                       \
  X(cuMemsetD8Async, _ptsz)                      \
  X(cuMemsetD8_v2, _ptds)                        \
  X(cuStreamBeginCapture_v2, _ptsz)              \
  X(cuStreamEndCapture, _ptsz)                   \
  X(cuStreamGetCtx, _ptsz)                       \
  X(cuStreamGetFlags, _ptsz)                     \
  X(cuStreamIsCapturing, _ptsz)                  \
  X(cuStreamQuery, _ptsz)                        \
  X(cuStreamSynchronize, _ptsz)                  \
  X(cuStreamWaitEvent, _ptsz)

#define KILN_EMULATOR_DECLARE(symbol, ...) \
  extern "C" __attribute__((visibility("default"))) std::type_identity_t<__VA_ARGS__> symbol;
KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_EMULATOR_DECLARE)
KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_EMULATOR_DECLARE)
KILN_EMULATOR_EXTRA_ENTRY_POINTS(KILN_EMULATOR_DECLARE)
#undef KILN_EMULATOR_DECLARE
#define KILN_EMULATOR_DECLARE(symbol, suffix) \
  extern "C" __attribute__((visibility("default"))) decltype(symbol) symbol##suffix;
KILN_EMULATOR_PER_THREAD_ENTRY_POINTS(KILN_EMULATOR_DECLARE)
#undef KILN_EMULATOR_DECLARE

}  // namespace kiln::emulator
