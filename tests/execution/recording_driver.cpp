#include "recording_driver.h"

#include <fmt/format.h>

#include <cstring>

namespace kiln::execution {
namespace {

using namespace cuda_abi;

thread_local RecordingDriver* recorder = nullptr;

uint64_t number(const void* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// NOLINTNEXTLINE(readability-function-size): the signature of cuLaunchKernel
CUresult record_launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, CUstream stream, void** parameters, void**) {
  RecordedLaunch launch{number(function), {gx, gy, gz}, {bx, by, bz}, shared, number(stream), {}};
  for (size_t i = 0; i < recorder->arguments_read; ++i) {
    uint64_t value = 0;
    std::memcpy(&value, parameters[i], sizeof value);
    launch.arguments.push_back(value);
  }
  recorder->launches.push_back(std::move(launch));
  recorder->steps.emplace_back("launch");
  return CUDA_SUCCESS;
}

void add_modules(device::DriverTable& table) {
  table.cuModuleLoadDataEx = [](CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
    recorder->images.emplace_back(static_cast<const char*>(image));
    *module = reinterpret_cast<CUmodule>(uint64_t{1});
    return CUDA_SUCCESS;
  };
  table.cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  table.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) {
    *function = reinterpret_cast<CUfunction>(std::strlen(name));
    return CUDA_SUCCESS;
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction) {
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? recorder->max_threads
             : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES   ? recorder->static_shared
                                                                  : 0;
    return CUDA_SUCCESS;
  };
  table.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int value) {
    recorder->permitted_shared.push_back(value);
    return CUDA_SUCCESS;
  };
}

}  // namespace

RecordingDriver::RecordingDriver() {
  recorder = this;
  add_modules(fake.table);
  fake.table.cuLaunchKernel = record_launch;
  fake.table.cuMemsetD32Async = [](CUdeviceptr address, unsigned, size_t count, CUstream) {
    recorder->steps.push_back(fmt::format("clear {} {}x4", address, count));
    return CUDA_SUCCESS;
  };
  fake.table.cuMemsetD8Async = [](CUdeviceptr address, unsigned char, size_t count, CUstream) {
    recorder->steps.push_back(fmt::format("clear {} {}x1", address, count));
    return CUDA_SUCCESS;
  };
}

RecordingDriver::~RecordingDriver() {
  recorder = nullptr;
}

}  // namespace kiln::execution
