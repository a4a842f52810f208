#include "kiln/device/memory.h"

#include <fmt/format.h>

namespace kiln::device {
namespace {

using cuda_abi::CUdeviceptr;
using cuda_abi::CUresult;
using cuda_abi::CUstream;

/// One copy or fill: nothing for no bytes, and a text of what it touched only where it failed.
template <typename Entry, typename... Arguments>
void transfer(const ContextHandle& context, const char* name, Entry entry, size_t bytes, CUdeviceptr address,
              Arguments... arguments) {
  if (bytes == 0) return;
  const CUresult result = context.call(entry, arguments...);
  if (result == cuda_abi::CUDA_SUCCESS) return;
  context.driver().fail(result, name, fmt::format("{} bytes at device address {:#x}", bytes, address));
}

[[noreturn]] void fail_allocation(const ContextHandle& context, CUresult result, const char* call, size_t bytes) {
  std::string object = fmt::format("{} bytes", bytes);
  if (result == cuda_abi::CUDA_ERROR_OUT_OF_MEMORY) {
    const ContextHandle::MemoryUse use = context.memory();
    object +=
        fmt::format(" on {} ({} of {} bytes free)", context.device().info().name, use.free_bytes, use.total_bytes);
  }
  context.driver().fail(result, call, object);
}

}  // namespace

Buffer::Buffer(std::shared_ptr<const ContextHandle> context, size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  CUdeviceptr address = 0;
  const BesideCaptures beside(context->driver());
  const CUresult result = context->call(&DriverTable::cuMemAlloc_v2, &address, bytes);
  if (result != cuda_abi::CUDA_SUCCESS) fail_allocation(*context, result, "cuMemAlloc", bytes);
  memory_ = OwnedHandle<CUdeviceptr>(std::move(context), address, &DriverTable::cuMemFree_v2, "cuMemFree");
}

HostBuffer::HostBuffer(std::shared_ptr<const ContextHandle> context, size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* pointer = nullptr;
  const BesideCaptures beside(context->driver());
  const CUresult result = context->call(&DriverTable::cuMemHostAlloc, &pointer, bytes, 0U);
  if (result != cuda_abi::CUDA_SUCCESS) fail_allocation(*context, result, "cuMemHostAlloc", bytes);
  memory_ = OwnedHandle<void*>(std::move(context), pointer, &DriverTable::cuMemFreeHost, "cuMemFreeHost");
}

RegisteredRange::RegisteredRange(std::shared_ptr<const ContextHandle> context, void* data, size_t bytes) {
  const BesideCaptures beside(context->driver());
  const CUresult result = context->call(&DriverTable::cuMemHostRegister_v2, data, bytes, 0U);
  context->driver().check(result, "cuMemHostRegister", fmt::format("{} bytes at {}", bytes, data));
  memory_ = OwnedHandle<void*>(std::move(context), data, &DriverTable::cuMemHostUnregister, "cuMemHostUnregister");
}

void copy_to_device(const ContextHandle& context, CUdeviceptr to, const void* from, size_t bytes) {
  transfer(context, "cuMemcpyHtoD", &DriverTable::cuMemcpyHtoD_v2, bytes, to, to, from, bytes);
}

void copy_to_host(const ContextHandle& context, void* to, CUdeviceptr from, size_t bytes) {
  transfer(context, "cuMemcpyDtoH", &DriverTable::cuMemcpyDtoH_v2, bytes, from, to, from, bytes);
}

void copy_to_device(const ContextHandle& context, CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  transfer(context, "cuMemcpyHtoDAsync", &DriverTable::cuMemcpyHtoDAsync_v2, bytes, to, to, from, bytes, stream);
}

void copy_to_host(const ContextHandle& context, void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  transfer(context, "cuMemcpyDtoHAsync", &DriverTable::cuMemcpyDtoHAsync_v2, bytes, from, to, from, bytes, stream);
}

void copy_on_device(const ContextHandle& context, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  transfer(context, "cuMemcpyDtoDAsync", &DriverTable::cuMemcpyDtoDAsync_v2, bytes, to, to, from, bytes, stream);
}

void fill_bytes(const ContextHandle& context, CUdeviceptr address, uint8_t value, size_t count, CUstream stream) {
  transfer(context, "cuMemsetD8Async", &DriverTable::cuMemsetD8Async, count, address, address, value, count, stream);
}

void fill_words(const ContextHandle& context, CUdeviceptr address, uint32_t value, size_t count, CUstream stream) {
  transfer(context, "cuMemsetD32Async", &DriverTable::cuMemsetD32Async, 4 * count, address, address, value, count,
           stream);
}

}  // namespace kiln::device
