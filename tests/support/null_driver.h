// A driver whose entry points succeed at once and do nothing: what is left of a call's time and of its allocations is
// Kiln's own.
#pragma once

#include <cstddef>
#include <memory>

#include "kiln/device/driver.h"

namespace kiln {

namespace detail {

template <class Function>
struct DoesNothing;
template <class... Parameters>
struct DoesNothing<cuda_abi::CUresult (*)(Parameters...)> {
  static cuda_abi::CUresult call(Parameters...) { return cuda_abi::CUDA_SUCCESS; }
};

}  // namespace detail

/// One device; kernels load and launch, and nothing happens.
inline std::shared_ptr<const device::Driver> null_driver() {
  using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the list spells its types unqualified
  device::DriverTable table;
#define KILN_FILL(name, ...) table.name = &detail::DoesNothing<decltype(table.name)>::call;
  KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_FILL)
#undef KILN_FILL
  // The few answers that opening a device and loading a kernel need.
  table.cuDriverGetVersion = [](int* version) { return *version = 13000, CUDA_SUCCESS; };
  table.cuDeviceGetCount = [](int* count) { return *count = 1, CUDA_SUCCESS; };
  table.cuDeviceGet = [](CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; };
  table.cuDeviceGetName = [](char* name, int, CUdevice) { return name[0] = 'n', name[1] = '\0', CUDA_SUCCESS; };
  table.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) { return *bytes = size_t{1} << 36, CUDA_SUCCESS; };
  table.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    const bool is_none = attribute == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS ||
                         attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    const bool is_major = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    return *value = is_none ? 0 : is_major ? 9 : 1024, CUDA_SUCCESS;
  };
  table.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    return *context = reinterpret_cast<CUcontext>(8), CUDA_SUCCESS;
  };
  table.cuCtxGetCurrent = [](CUcontext* context) { return *context = reinterpret_cast<CUcontext>(8), CUDA_SUCCESS; };
  table.cuCtxGetDevice = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
  table.cuModuleLoadDataEx = [](CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
    return *module = reinterpret_cast<CUmodule>(8), CUDA_SUCCESS;
  };
  table.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    return *function = reinterpret_cast<CUfunction>(8), CUDA_SUCCESS;
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) { return *value = 1024, CUDA_SUCCESS; };
  return device::Driver::from_table(table, "a driver that does nothing");
}

}  // namespace kiln
