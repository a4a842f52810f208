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

std::vector<uint64_t> read_arguments(void** parameters) {
  const size_t words = recorder->argument_words;
  std::vector<uint64_t> arguments(recorder->arguments_read * words);
  for (size_t i = 0; i < recorder->arguments_read; ++i) {
    std::memcpy(&arguments[i * words], parameters[i], words * sizeof arguments[0]);
  }
  return arguments;
}

void add(RecordedLaunch launch) {
  recorder->launches.push_back(std::move(launch));
  recorder->steps.emplace_back("launch");
}

// NOLINTNEXTLINE(readability-function-size): the signature of cuLaunchKernel
CUresult record_launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, CUstream stream, void** parameters, void**) {
  add({number(function), {gx, gy, gz}, {bx, by, bz}, shared, number(stream), read_arguments(parameters), {}});
  return CUDA_SUCCESS;
}

CUresult record_launch_with(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
  add({number(function),
       {config->gridDimX, config->gridDimY, config->gridDimZ},
       {config->blockDimX, config->blockDimY, config->blockDimZ},
       config->sharedMemBytes,
       number(config->hStream),
       read_arguments(parameters),
       {config->attrs, config->attrs + config->numAttrs}});
  return CUDA_SUCCESS;
}

// NOLINTNEXTLINE(readability-function-size): the signature of cuTensorMapEncodeTiled
CUresult record_map(CUtensorMap* map, CUtensorMapDataType type, unsigned rank, void* address, const uint64_t* extents,
                    const uint64_t* strides, const unsigned* box, const unsigned* steps, CUtensorMapInterleave,
                    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  if (reinterpret_cast<uintptr_t>(map) % alignof(CUtensorMap) != 0) return CUDA_ERROR_INVALID_VALUE;
  recorder->maps.push_back({type,
                            swizzle,
                            number(address),
                            {extents, extents + rank},
                            {strides, strides + rank - 1},
                            {box, box + rank},
                            {steps, steps + rank}});
  map->opaque[0] = recorder->maps.size();
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
  fake.table.cuLaunchKernelEx = record_launch_with;
  fake.table.cuTensorMapEncodeTiled = record_map;
  fake.table.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int threads, size_t bytes) {
    recorder->occupancies.push_back(fmt::format("{} {}", threads, bytes));
    *blocks = recorder->blocks_per_sm;
    return CUDA_SUCCESS;
  };
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
