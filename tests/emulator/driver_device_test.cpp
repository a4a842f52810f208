// Devices and contexts through the driver API.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_device_test {
namespace {

int attribute(const Emulator& cuda, CUdevice_attribute name, CUdevice device = 0) {
  int value = -1;
  EXPECT_EQ(cuda.cuDeviceGetAttribute(&value, name, device), CUDA_SUCCESS) << name;
  return value;
}

std::string name_of(const Emulator& cuda, CUdevice device) {
  char name[64] = "";
  EXPECT_EQ(cuda.cuDeviceGetName(name, sizeof name, device), CUDA_SUCCESS);
  return name;
}

TEST(DriverDevice, IsAnH200UnlessToldOtherwise) {
  const Emulator cuda;
  int count = 0;
  ASSERT_EQ(cuda.cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(name_of(cuda, 0), "Kiln emulated NVIDIA H200");
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 0);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 132);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH), 6144);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE), 60 << 20);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 49152);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 232448);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), 1024);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
  int version = 0;
  EXPECT_EQ(cuda.cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 13000);
}

TEST(DriverDevice, AnswersEveryListedAttributeOnEveryModel) {
  const Emulator cuda(
      Variables{{"KILN_EMULATOR_DEVICE", "h200,h100,b200,a100,a10,l40s,rtx3070,rtx4090,rtx4000ada,rtx5090,t4"}});
  int count = 0;
  ASSERT_EQ(cuda.cuDeviceGetCount(&count), CUDA_SUCCESS);
  ASSERT_EQ(count, 11);
  const int capabilities[] = {90, 90, 100, 80, 86, 89, 86, 89, 89, 120, 75};
  for (CUdevice device = 0; device < count; ++device) {
    EXPECT_EQ(10 * attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) +
                  attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
              capabilities[device]);
    for (const int name : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 36, 37, 38, 39, 41, 81, 82, 97, 106}) {
      EXPECT_GT(attribute(cuda, static_cast<CUdevice_attribute>(name), device), 0) << name;
    }
    EXPECT_EQ(attribute(cuda, static_cast<CUdevice_attribute>(95), device), 1) << "cooperative launches";
    EXPECT_EQ(attribute(cuda, static_cast<CUdevice_attribute>(127), device), capabilities[device] >= 90 ? 1 : 0)
        << "tensor maps";
    for (const int name : {32, 88, 111}) EXPECT_GE(attribute(cuda, static_cast<CUdevice_attribute>(name), device), 0);
    size_t bytes = 0;
    EXPECT_EQ(cuda.cuDeviceTotalMem_v2(&bytes, device), CUDA_SUCCESS);
    EXPECT_GT(bytes, size_t{7} << 30);
  }
}

TEST(DriverDevice, RefusesUnknownOrdinalsAndAttributes) {
  const Emulator cuda;
  CUdevice device = -1;
  int value = 0;
  EXPECT_EQ(cuda.cuDeviceGet(&device, 0), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuda.cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuda.cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuda.cuDeviceGet(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9999), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(DriverDevice, CutsItsNameToTheBuffer) {
  const Emulator cuda;
  char name[5] = "xxxx";
  EXPECT_EQ(cuda.cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
  EXPECT_STREQ(name, "Kiln");
}

TEST(DriverDevice, HasAUuidOfItsOwn) {
  const Emulator cuda(Variables{{"KILN_EMULATOR_DEVICE", "t4,t4"}});
  CUuuid first = {}, second = {}, again = {};
  EXPECT_EQ(cuda.cuDeviceGetUuid_v2(&first, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetUuid_v2(&second, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetUuid_v2(&again, 0), CUDA_SUCCESS);
  EXPECT_NE(std::memcmp(&first, &second, sizeof first), 0);
  EXPECT_EQ(std::memcmp(&first, &again, sizeof first), 0);
}

TEST(PrimaryContext, LivesUntilItsLastRelease) {
  const Emulator cuda;
  CUcontext first = nullptr, second = nullptr;
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&second, 0), CUDA_SUCCESS);
  EXPECT_EQ(first, second);
  ASSERT_EQ(cuda.cuCtxSetCurrent(first), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&second, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << "the handle stays the same";
}

TEST(CurrentContext, IsAStackPerThread) {
  const Emulator cuda(Variables{{"KILN_EMULATOR_DEVICE", "h200,t4"}});
  CUcontext first = nullptr, second = nullptr, found = nullptr;
  CUdevice device = -1;
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuCtxPushCurrent_v2(first), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxPushCurrent_v2(second), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxGetDevice(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  std::thread([&] {
    EXPECT_EQ(cuda.cuCtxGetCurrent(&found), CUDA_SUCCESS);
    EXPECT_EQ(found, nullptr);
  }).join();
  EXPECT_EQ(cuda.cuCtxPopCurrent_v2(&found), CUDA_SUCCESS);
  EXPECT_EQ(found, second);
  EXPECT_EQ(cuda.cuCtxSetCurrent(second), CUDA_SUCCESS) << "replaces the top";
  EXPECT_EQ(cuda.cuCtxPopCurrent_v2(&found), CUDA_SUCCESS);
  EXPECT_EQ(found, second);
  EXPECT_EQ(cuda.cuCtxPopCurrent_v2(&found), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1234)), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(CreatedContext, IsCurrentAndHasMemoryOfItsOwn) {
  const Emulator cuda;
  auto* create = cuda.function<CUresult(CUcontext*, void*, unsigned, CUdevice)>("cuCtxCreate_v4");
  auto* destroy = cuda.function<CUresult(CUcontext)>("cuCtxDestroy_v2");
  CUcontext first = nullptr, second = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(create(&first, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&address, 64), CUDA_SUCCESS);
  ASSERT_EQ(create(&second, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(destroy(second), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(address), CUDA_SUCCESS) << "the first is current again";
  EXPECT_EQ(destroy(first), CUDA_SUCCESS);
  EXPECT_EQ(destroy(first), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_device_test
