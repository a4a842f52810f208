// Entry points of programs that are compiled for a default stream of each thread (nvcc --default-stream per-thread):
// the same calls, in which no stream, and the legacy one's name 0, mean the calling thread's default stream.
#include "driver/exports.h"

namespace kiln::emulator {
namespace {

const auto per_thread_stream = reinterpret_cast<CUstream>(uintptr_t{2});  // CU_STREAM_PER_THREAD

CUstream own(CUstream stream) {
  return stream == nullptr ? per_thread_stream : stream;
}

}  // namespace

// Calls of a stream.

CUresult cuMemcpyAsync_ptsz(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return cuMemcpyAsync(destination, source, bytes, own(stream));
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr destination, const void* source, size_t bytes, CUstream stream) {
  return cuMemcpyHtoDAsync_v2(destination, source, bytes, own(stream));
}
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return cuMemcpyDtoHAsync_v2(destination, source, bytes, own(stream));
}
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return cuMemcpyDtoDAsync_v2(destination, source, bytes, own(stream));
}
CUresult cuMemsetD8Async_ptsz(CUdeviceptr address, unsigned char value, size_t count, CUstream stream) {
  return cuMemsetD8Async(address, value, count, own(stream));
}
CUresult cuMemsetD16Async_ptsz(CUdeviceptr address, unsigned short value, size_t count, CUstream stream) {
  return cuMemsetD16Async(address, value, count, own(stream));
}
CUresult cuMemsetD32Async_ptsz(CUdeviceptr address, unsigned value, size_t count, CUstream stream) {
  return cuMemsetD32Async(address, value, count, own(stream));
}
CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned* flags) {
  return cuStreamGetFlags(own(stream), flags);
}
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* context) {
  return cuStreamGetCtx(own(stream), context);
}
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
  return cuStreamWaitEvent(own(stream), event, flags);
}
CUresult cuStreamQuery_ptsz(CUstream stream) {
  return cuStreamQuery(own(stream));
}
CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return cuStreamSynchronize(own(stream));
}
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return cuStreamIsCapturing(own(stream), status);
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return cuStreamBeginCapture_v2(own(stream), mode);
}
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return cuStreamEndCapture(own(stream), graph);
}
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return cuEventRecord(event, own(stream));
}
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
  return cuEventRecordWithFlags(event, own(stream), flags);
}
CUresult cuGraphUpload_ptsz(CUgraphExec executable, CUstream stream) {
  return cuGraphUpload(executable, own(stream));
}
CUresult cuGraphLaunch_ptsz(CUgraphExec executable, CUstream stream) {
  return cuGraphLaunch(executable, own(stream));
}
// NOLINTNEXTLINE(readability-function-size): the driver API's parameters
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream,
                             void** parameters, void** extra) {
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_shared_bytes, own(stream),
                        parameters, extra);
}
// NOLINTNEXTLINE(readability-function-size): the driver API's parameters
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z,
                                        unsigned dynamic_shared_bytes, CUstream stream, void** parameters) {
  return cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_shared_bytes,
                                   own(stream), parameters);
}
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUlaunchConfig in_own_stream = *config;
  in_own_stream.hStream = own(config->hStream);
  return cuLaunchKernelEx(&in_own_stream, function, parameters, extra);
}

// Copies and fills of the default stream. They wait for all of the context's work anyway.

CUresult cuMemcpy_ptds(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return cuMemcpy(destination, source, bytes);
}
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr destination, const void* source, size_t bytes) {
  return cuMemcpyHtoD_v2(destination, source, bytes);
}
CUresult cuMemcpyDtoH_v2_ptds(void* destination, CUdeviceptr source, size_t bytes) {
  return cuMemcpyDtoH_v2(destination, source, bytes);
}
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return cuMemcpyDtoD_v2(destination, source, bytes);
}
CUresult cuMemsetD8_v2_ptds(CUdeviceptr address, unsigned char value, size_t count) {
  return cuMemsetD8_v2(address, value, count);
}
CUresult cuMemsetD16_v2_ptds(CUdeviceptr address, unsigned short value, size_t count) {
  return cuMemsetD16_v2(address, value, count);
}
CUresult cuMemsetD32_v2_ptds(CUdeviceptr address, unsigned value, size_t count) {
  return cuMemsetD32_v2(address, value, count);
}

}  // namespace kiln::emulator
