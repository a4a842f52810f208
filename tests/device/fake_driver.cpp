#include "fake_driver.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace kiln::device {
namespace {

using namespace cuda_abi;

FakeDriver* fake = nullptr;  // of all threads of the test that has it

CUcontext context_of(int number) {
  return reinterpret_cast<CUcontext>(static_cast<intptr_t>(number));
}

int number_of(CUcontext context) {
  return static_cast<int>(reinterpret_cast<intptr_t>(context));
}

void add_information(DriverTable& table) {
  table.cuDriverGetVersion = [](int* version) {
    *version = fake->version;
    return CUDA_SUCCESS;
  };
  table.cuGetErrorName = [](CUresult result, const char** name) {
    *name = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_PLANTED";
    return CUDA_SUCCESS;
  };
  table.cuGetErrorString = [](CUresult, const char** text) {
    *text = "as the test wants it";
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetCount = [](int* count) {
    *count = fake->devices;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetName = [](char* name, int length, CUdevice) {
    std::strncpy(name, "Fake GPU MIG 1g.18gb", static_cast<size_t>(length));
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetUuid_v2 = [](CUuuid* uuid, CUdevice) {
    for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<unsigned char>(0x11 * i);
    return CUDA_SUCCESS;
  };
  table.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) {
    *bytes = (size_t{18} << 30) - 12345;
    return CUDA_SUCCESS;
  };
  // Each attribute's value is its own number times 1000, so that a mixed-up one shows.
  table.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    *value = 1000 * static_cast<int>(attribute);
    return CUDA_SUCCESS;
  };
}

void add_contexts(DriverTable& table) {
  table.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    *context = context_of(100 + device);
    return note("retain");
  };
  table.cuDevicePrimaryCtxRelease_v2 = [](CUdevice) { return note("release"); };
  table.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    std::swap(*mode, fake->capture_mode);
    return CUDA_SUCCESS;
  };
  table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  table.cuCtxGetCurrent = [](CUcontext* context) {
    *context = fake->contexts.empty() ? nullptr : context_of(fake->contexts.back());
    return CUDA_SUCCESS;
  };
  table.cuCtxPushCurrent_v2 = [](CUcontext context) {
    fake->contexts.push_back(number_of(context));
    return note(fmt::format("push {}", number_of(context)));
  };
  table.cuCtxPopCurrent_v2 = [](CUcontext* context) {
    *context = context_of(fake->contexts.back());
    fake->contexts.pop_back();
    return note("pop");
  };
  // Contexts 100 and up are primary ones; those below are a caller's, of the device that is their last digit.
  table.cuCtxGetDevice = [](CUdevice* device) {
    *device = fake->contexts.back() % 10;
    return CUDA_SUCCESS;
  };
}

void add_memory(DriverTable& table) {
  table.cuMemGetInfo_v2 = [](size_t* free_bytes, size_t* total_bytes) {
    *free_bytes = 1000;
    *total_bytes = 5000;
    return CUDA_SUCCESS;
  };
  table.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t bytes) {
    *address = 4096;
    return note(fmt::format("alloc {}", bytes));
  };
  table.cuMemFree_v2 = [](CUdeviceptr address) { return note(fmt::format("free {}", address)); };
  table.cuMemcpyHtoD_v2 = [](CUdeviceptr, const void*, size_t bytes) { return note(fmt::format("upload {}", bytes)); };
}

}  // namespace

cuda_abi::CUresult note(std::string call) {
  fake->calls.push_back(std::move(call));
  return cuda_abi::CUDA_SUCCESS;
}

FakeDriver::FakeDriver() {
  fake = this;
  add_information(table);
  add_contexts(table);
  add_memory(table);
}

FakeDriver::~FakeDriver() {
  fake = nullptr;
}

}  // namespace kiln::device
