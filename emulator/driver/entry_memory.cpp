// Allocation, and questions about addresses.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "driver.h"
#include "driver/exports.h"

namespace kiln::emulator {
namespace {

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

// Host memory is valid in every context, so all work that may use it must end before it goes.
void drain_all(const Driver& driver) {
  for (const std::shared_ptr<Context>& context : driver.contexts.all()) {
    const std::lock_guard idle(context->execution());
  }
}

struct PointerInfo {
  std::shared_ptr<Context> context;
  AddressSpace::Range range;
  bool host = false;
};

// The owner of an address: any context's device memory, or pinned host memory, which counts as the current context's.
PointerInfo pointer_info(uint64_t address) {
  const Driver& driver = Driver::instance();
  for (const std::shared_ptr<Context>& context : driver.contexts.all()) {
    if (const auto range = context->memory().find(address)) return {context, *range, false};
  }
  const auto range = driver.host_memory.find(address);
  require(range.has_value());
  return {current_context(), *range, true};
}

// The current context, when no capture forbids what the call does.
std::shared_ptr<Context> context_for_unsafe_call() {
  std::shared_ptr<Context> context = current_context();
  Driver::instance().captures.before_unsafe_call();
  return context;
}

void allocate_host(void** pointer, size_t bytes) {
  context_for_unsafe_call();
  require(pointer != nullptr && bytes > 0);
  const std::optional<uint64_t> address = Driver::instance().host_memory.allocate(bytes);
  require(address.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
  *pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(*address));
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return entry([&] {
    const std::shared_ptr<Context> context = current_context();
    require(free_bytes != nullptr && total_bytes != nullptr);
    *free_bytes = context->memory().free_bytes();
    *total_bytes = context->memory().capacity();
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return entry([&] {
    const std::shared_ptr<Context> context = context_for_unsafe_call();
    require(address != nullptr && bytes > 0);
    const std::optional<uint64_t> allocated = context->memory().allocate(bytes);
    require(allocated.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
    *address = *allocated;
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return entry([&] {
    const std::shared_ptr<Context> context = context_for_unsafe_call();
    if (address == 0) return;
    const std::lock_guard execution(context->execution());
    if (context->memory().free(address)) return;
    std::fprintf(stderr, "kiln emulator: %s\n",
                 fmt::format("cuMemFree of {:#x}, which is no allocation's beginning: it is {}", address,
                             context->memory().describe(address))
                     .c_str());
    fail(CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  return entry([&] { allocate_host(pointer, bytes); });
}

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return entry([&] { allocate_host(pointer, bytes); });
}

CUresult cuMemFreeHost(void* pointer) {
  return entry([&] {
    context_for_unsafe_call();
    if (pointer == nullptr) return;
    Driver& driver = Driver::instance();
    drain_all(driver);
    require(driver.host_memory.free(address_of(pointer)));
  });
}

CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned) {
  return entry([&] {
    constexpr auto already_registered = static_cast<CUresult>(712);  // CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
    context_for_unsafe_call();
    require(pointer != nullptr && bytes > 0);
    const std::string name = fmt::format("registered host memory of {} bytes", bytes);
    require(Driver::instance().host_memory.add(address_of(pointer), bytes, name), already_registered);
  });
}

CUresult cuMemHostUnregister(void* pointer) {
  return entry([&] {
    constexpr auto not_registered = static_cast<CUresult>(713);  // CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
    context_for_unsafe_call();
    Driver& driver = Driver::instance();
    drain_all(driver);
    require(driver.host_memory.remove(address_of(pointer)), not_registered);
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned flags) {
  return entry([&] {
    current_context();
    require(address != nullptr && flags == 0 && Driver::instance().host_memory.contains(address_of(pointer), 1));
    *address = address_of(pointer);
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return entry([&] {
    const std::optional<AddressSpace::Range> range = current_context()->memory().find(address);
    require(range.has_value(), CUDA_ERROR_NOT_FOUND);
    if (base != nullptr) *base = range->begin;
    if (bytes != nullptr) *bytes = range->bytes;
  });
}

// No memory of this device is mapped from handles: cuMemCreate makes none.
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle*, void*) {
  return entry([] { fail(CUDA_ERROR_INVALID_VALUE); });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle) {
  return entry([] { fail(CUDA_ERROR_INVALID_VALUE); });
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return entry([&] {
    require(value != nullptr);
    const PointerInfo found = pointer_info(address);
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *static_cast<CUcontext*>(value) = found.context->handle();
        return;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(value) = found.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return;
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *static_cast<CUdeviceptr*>(value) = address;
        return;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(value) = found.context->device().ordinal;
        return;
      case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *static_cast<CUmemoryPool*>(value) = nullptr;
        return;
    }
    fail(CUDA_ERROR_NOT_SUPPORTED);
  });
}

}  // namespace kiln::emulator
