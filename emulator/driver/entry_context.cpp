// Contexts: primary and created ones, and which is current.
#include <memory>

#include "driver.h"
#include "driver/exports.h"

namespace kiln::emulator {
namespace {

// Replaces the top of the calling thread's stack, as cuCtxSetCurrent does; null pops it.
void set_current(CUcontext context) {
  std::vector<CUcontext>& stack = context_stack();
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
}

void create(CUcontext* context, CUdevice ordinal) {
  Driver& driver = Driver::instance();
  require(context != nullptr);
  Device& device = driver.device(ordinal);
  const CUcontext handle = driver.contexts.reserve();
  driver.create_context(device, handle);
  context_stack().push_back(handle);
  *context = handle;
}

bool is_primary(const Driver& driver, CUcontext context) {
  for (int ordinal = 0; ordinal < driver.device_count(); ++ordinal) {
    if (driver.device(ordinal).primary_handle == context) return true;
  }
  return false;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::instance();
    Device& found = driver.device(device);
    require(context != nullptr);
    const std::lock_guard lock(found.primary_mutex);
    if (found.primary_retains == 0) driver.create_context(found, found.primary_handle);
    ++found.primary_retains;
    *context = found.primary_handle;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::instance();
    Device& found = driver.device(device);
    const std::lock_guard lock(found.primary_mutex);
    require(found.primary_retains > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--found.primary_retains == 0) driver.destroy_context(found.primary_handle);
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::instance();
    Device& found = driver.device(device);
    const std::lock_guard lock(found.primary_mutex);
    if (found.primary_retains == 0) return;
    driver.destroy_context(found.primary_handle);  // retains keep counting: the next use starts afresh
    driver.create_context(found, found.primary_handle);
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return entry([&] {
    Device& found = Driver::instance().device(device);
    require(flags != nullptr && active != nullptr);
    const std::lock_guard lock(found.primary_mutex);
    *flags = 0;
    *active = found.primary_retains > 0 ? 1 : 0;
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned) {
  return entry([&] { Driver::instance().device(device); });  // how a host thread waits makes no difference here
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device) {
  return entry([&] { create(context, device); });
}

CUresult cuCtxCreate_v3(CUcontext* context, void*, int affinity_count, unsigned, CUdevice device) {
  return entry([&] {
    require(affinity_count == 0, CUDA_ERROR_NOT_SUPPORTED);
    create(context, device);
  });
}

CUresult cuCtxCreate_v4(CUcontext* context, CtxCreateParams* parameters, unsigned, CUdevice device) {
  return entry([&] {
    const bool plain = parameters == nullptr || (parameters->affinity_count == 0 && parameters->graphics == nullptr);
    require(plain, CUDA_ERROR_NOT_SUPPORTED);
    create(context, device);
  });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return entry([&] {
    Driver& driver = Driver::instance();
    require(!is_primary(driver, context), CUDA_ERROR_INVALID_CONTEXT);
    driver.destroy_context(context);
    std::vector<CUcontext>& stack = context_stack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
  });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return entry([&] {
    const Driver& driver = Driver::instance();
    require(version != nullptr);
    require(context == nullptr || driver.contexts.contains(context), CUDA_ERROR_INVALID_CONTEXT);
    *version = 3020;  // the one that 64-bit drivers have reported since CUDA 3.2
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return quick_entry([&] {
    Driver::instance();
    require(context != nullptr);
    const std::vector<CUcontext>& stack = context_stack();
    *context = stack.empty() ? nullptr : stack.back();
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return quick_entry([&] {
    const Driver& driver = Driver::instance();
    require(context == nullptr || driver.contexts.contains(context), CUDA_ERROR_INVALID_CONTEXT);
    set_current(context);
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return quick_entry([&] {
    require(Driver::instance().contexts.contains(context), CUDA_ERROR_INVALID_CONTEXT);
    context_stack().push_back(context);
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return quick_entry([&] {
    Driver::instance();
    std::vector<CUcontext>& stack = context_stack();
    require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return cuCtxGetDevice_v2(device, nullptr);
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  return entry([&] {
    const std::shared_ptr<Context> found = context_or_current(context);
    require(device != nullptr);
    *device = found->device().ordinal;
  });
}

CUresult cuCtxSynchronize() {
  return cuCtxSynchronize_v2(nullptr);
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  return entry([&] {
    const std::shared_ptr<Context> found = context_or_current(context);
    Driver::instance().captures.before_synchronising(*found);
    { const std::lock_guard idle(found->execution()); }  // waits for what other threads are executing
    found->require_usable();
    Timeline::synchronise(found->device().timeline.horizon());
  });
}

}  // namespace kiln::emulator
