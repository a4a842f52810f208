#include "kiln/device/context.h"

#include <fmt/format.h>

#include "kiln/device/owned_handle.h"

namespace kiln::device {
namespace {

std::string named(const Device& device) {
  return fmt::format("device {} ({})", device.ordinal(), device.info().name);
}

/// The context that is current on this thread if it belongs to `device`, else null.
cuda_abi::CUcontext current_context_of(const Device& device) {
  const Driver& driver = *device.driver();
  cuda_abi::CUcontext context = nullptr;
  driver.check(driver.calls().cuCtxGetCurrent(&context), "cuCtxGetCurrent", "this thread");
  if (context == nullptr) return nullptr;
  cuda_abi::CUdevice owner = 0;
  driver.check(driver.calls().cuCtxGetDevice(&owner), "cuCtxGetDevice", "this thread's context");
  return owner == device.raw() ? context : nullptr;
}

}  // namespace

std::shared_ptr<const ContextHandle> ContextHandle::acquire(const Device& device) {
  if (const cuda_abi::CUcontext callers = current_context_of(device); callers != nullptr) {
    return std::shared_ptr<const ContextHandle>(new ContextHandle(device, callers, false));
  }
  const Driver& driver = *device.driver();
  cuda_abi::CUcontext primary = nullptr;
  const cuda_abi::CUresult result = driver.calls().cuDevicePrimaryCtxRetain(&primary, device.raw());
  if (result != cuda_abi::CUDA_SUCCESS) driver.fail(result, "cuDevicePrimaryCtxRetain", named(device));
  return std::shared_ptr<const ContextHandle>(new ContextHandle(device, primary, true));
}

ContextHandle::ContextHandle(const Device& device, cuda_abi::CUcontext context, bool primary)
    : device_(device), context_(context), primary_(primary) {}

ContextHandle::~ContextHandle() {
  if (!primary_) return;
  const cuda_abi::CUresult result = driver().calls().cuDevicePrimaryCtxRelease_v2(device_.raw());
  if (result != cuda_abi::CUDA_SUCCESS) log_failed_release(driver(), result, "cuDevicePrimaryCtxRelease");
}

void ContextHandle::synchronize() const {
  const cuda_abi::CUresult result = call(&DriverTable::cuCtxSynchronize);
  if (result != cuda_abi::CUDA_SUCCESS) driver().fail(result, "cuCtxSynchronize", named(device_));
}

ContextHandle::MemoryUse ContextHandle::memory() const {
  MemoryUse use;
  driver().check(call(&DriverTable::cuMemGetInfo_v2, &use.free_bytes, &use.total_bytes), "cuMemGetInfo", "the device");
  return use;
}

bool ContextHandle::ask(cuda_abi::CUdeviceptr address, uint64_t bytes) const {
  const BesideCaptures beside(driver());
  unsigned type = 0;
  cuda_abi::CUresult result = call(&DriverTable::cuPointerGetAttribute, static_cast<void*>(&type),
                                   cuda_abi::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (result == cuda_abi::CUDA_SUCCESS && type == cuda_abi::CU_MEMORYTYPE_HOST) {
    cuda_abi::CUdeviceptr there = 0;  // registered memory may stand elsewhere for the device
    result = call(&DriverTable::cuPointerGetAttribute, static_cast<void*>(&there),
                  cuda_abi::CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address);
    if (result == cuda_abi::CUDA_SUCCESS && there != address) return false;
  }
  if (result == cuda_abi::CUDA_ERROR_INVALID_VALUE && !device_.info().reaches_host_memory) return false;
  const bool is_device_memory = result == cuda_abi::CUDA_SUCCESS && type != cuda_abi::CU_MEMORYTYPE_HOST;
  if (is_device_memory && short_allocation(address, bytes)) return false;
  if (result == cuda_abi::CUDA_SUCCESS || result == cuda_abi::CUDA_ERROR_INVALID_VALUE) reached_.add(address, bytes);
  return true;
}

std::optional<ContextHandle::Allocation> ContextHandle::short_allocation(cuda_abi::CUdeviceptr address,
                                                                         uint64_t bytes) const {
  const BesideCaptures beside(driver());
  std::optional<Allocation> piece;
  for (;;) {
    Allocation found;
    size_t size = 0;
    const cuda_abi::CUresult result = call(&DriverTable::cuMemGetAddressRange_v2, &found.begin, &size, address);
    found.bytes = size;
    const bool is_told = result == cuda_abi::CUDA_SUCCESS && found.begin <= address && address - found.begin < size;
    if (!is_told) return piece;
    const uint64_t there = size - (address - found.begin);
    if (there >= bytes) return std::nullopt;
    if (!is_piece(address)) return found;
    piece = found;  // which may go on behind its end
    address += there;
    bytes -= there;
  }
}

// Whether `address` is in memory that several ranges may make up: what was mapped by handles, and what came from a
// pool, for which the driver's documentation leaves open what is a range.
bool ContextHandle::is_piece(cuda_abi::CUdeviceptr address) const {
  cuda_abi::CUmemoryPool pool = nullptr;
  const cuda_abi::CUresult of_pool = call(&DriverTable::cuPointerGetAttribute, static_cast<void*>(&pool),
                                          cuda_abi::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address);
  if (of_pool == cuda_abi::CUDA_SUCCESS && pool != nullptr) return true;
  const DriverTable& calls = driver().calls();
  if (calls.cuMemRetainAllocationHandle == nullptr || calls.cuMemRelease == nullptr) return false;
  cuda_abi::CUmemGenericAllocationHandle handle = 0;
  const cuda_abi::CUresult mapped =
      call(&DriverTable::cuMemRetainAllocationHandle, &handle, reinterpret_cast<void*>(address));
  if (mapped != cuda_abi::CUDA_SUCCESS) return false;
  const cuda_abi::CUresult released = call(&DriverTable::cuMemRelease, handle);
  if (released != cuda_abi::CUDA_SUCCESS) log_failed_release(driver(), released, "cuMemRelease");
  return true;
}

Current::Current(const ContextHandle& context) : driver_(&context.driver()) {
  const DriverTable& calls = driver_->calls();
  cuda_abi::CUcontext now = nullptr;
  driver_->check(calls.cuCtxGetCurrent(&now), "cuCtxGetCurrent", "this thread");
  if (now == context.raw()) return;
  driver_->check(calls.cuCtxPushCurrent_v2(context.raw()), "cuCtxPushCurrent", "the context");
  pushed_ = true;
}

Current::~Current() {
  if (!pushed_) return;
  cuda_abi::CUcontext popped = nullptr;
  const cuda_abi::CUresult result = driver_->calls().cuCtxPopCurrent_v2(&popped);
  if (result != cuda_abi::CUDA_SUCCESS) log_failed_release(*driver_, result, "cuCtxPopCurrent");
}

TimeOnly::TimeOnly(std::shared_ptr<const ContextHandle> context) : context_(std::move(context)) {
  const Current current(*context_);
  holds_ = context_->driver().time_only(true);
}

TimeOnly::~TimeOnly() {
  if (!holds_) return;
  const Current current(*context_);
  (void)context_->driver().time_only(false);
}

BesideCaptures::BesideCaptures(const Driver& driver) : driver_(&driver) {
  exchanged_ = driver.calls().cuThreadExchangeStreamCaptureMode(&before_) == cuda_abi::CUDA_SUCCESS;
}

BesideCaptures::~BesideCaptures() {
  if (exchanged_) driver_->calls().cuThreadExchangeStreamCaptureMode(&before_);
}

}  // namespace kiln::device
