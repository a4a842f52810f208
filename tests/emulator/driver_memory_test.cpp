// Device and pinned memory through the driver API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_memory_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class DriverMemory : public DriverTest {};

// A T4's modelled memory is smaller than most hosts' address space is spare.
class SmallDriverMemory : public DriverTest {
 protected:
  SmallDriverMemory() : DriverTest({{"KILN_EMULATOR_DEVICE", "t4"}}) {}
};

TEST_F(DriverMemory, IsAlignedAndZeroUntilWritten) {
  for (const size_t bytes : {size_t{1}, size_t{4}, size_t{255}, size_t{4096}, size_t{1000003}}) {
    const CUdeviceptr address = allocate(bytes);
    EXPECT_EQ(address % 256, 0u);
    std::vector<unsigned char> content(bytes, 7);
    EXPECT_EQ(cuda.cuMemcpyDtoH_v2(content.data(), address, bytes), CUDA_SUCCESS);
    EXPECT_THAT(content, Each(0));
    EXPECT_EQ(cuda.cuMemFree_v2(address), CUDA_SUCCESS);
  }
}

TEST_F(DriverMemory, RefusesEmptyAllocationsAndForeignAddresses) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemFree_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(reinterpret_cast<uintptr_t>(&address)), CUDA_ERROR_INVALID_VALUE);
  address = allocate(64);
  EXPECT_EQ(cuda.cuMemFree_v2(address + 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE) << "freed twice";
}

TEST_F(DriverMemory, CommitsOnlyWhatIsTouched) {
  const size_t bytes = size_t{20} << 30;
  const CUdeviceptr address = allocate(bytes);
  const uint32_t value = 42;
  EXPECT_EQ(cuda.cuMemcpyHtoD_v2(address + bytes - 4, &value, 4), CUDA_SUCCESS);
  EXPECT_THAT(read(address + bytes - 4, 1), ElementsAre(42u));
  EXPECT_THAT(read(address + bytes / 2, 1), ElementsAre(0u));
  EXPECT_EQ(cuda.cuMemFree_v2(address), CUDA_SUCCESS);
}

TEST_F(SmallDriverMemory, EndsAtTheModelledCapacity) {
  size_t free_bytes = 0, total_bytes = 0, device_bytes = 0;
  ASSERT_EQ(cuda.cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuDeviceTotalMem_v2(&device_bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, total_bytes);
  EXPECT_EQ(total_bytes, device_bytes);
  const CUdeviceptr all = allocate(total_bytes - 100);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, 101), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 0u);
  EXPECT_EQ(cuda.cuMemFree_v2(all), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, 4096), CUDA_SUCCESS) << "running out breaks nothing";
}

TEST_F(DriverMemory, CopiesAndFillsExactlyWhatIsAsked) {
  const CUdeviceptr address = allocate(32);
  EXPECT_EQ(cuda.cuMemsetD32Async(address, 7, 8, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemsetD8Async(address + 4, 0xff, 3, nullptr), CUDA_SUCCESS);
  const std::array<uint32_t, 2> source = {1, 2};
  EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(address + 8, source.data(), 8, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(address + 20, address + 8, 8, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(read(address, 8), ElementsAre(7u, 0xffffffu, 1u, 2u, 7u, 1u, 2u, 7u));
  EXPECT_EQ(cuda.cuMemsetD32Async(address + 2, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE) << "misaligned";
}

TEST_F(DriverMemory, RefusesTransfersThatLeaveAnAllocation) {
  const CUdeviceptr address = allocate(64);
  std::array<char, 128> host = {};
  CaptureStderr();
  EXPECT_EQ(cuda.cuMemcpyHtoD_v2(address, host.data(), 65), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("cuMemcpyHtoD of 65 bytes"));
  CaptureStderr();
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(host.data(), address + 60, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(address, address + 60, 8, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemsetD8Async(address, 0, 65, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemsetD32Async(address, 0, 17, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemcpyHtoD_v2(reinterpret_cast<uintptr_t>(host.data()), host.data(), 1), CUDA_ERROR_INVALID_VALUE);
  GetCapturedStderr();
  EXPECT_EQ(cuda.cuMemcpyHtoD_v2(address, host.data(), 64), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemcpyHtoD_v2(0, nullptr, 0), CUDA_SUCCESS) << "nothing to copy";
}

TEST_F(DriverMemory, KeepsFreedRangesOutOfUse) {
  const CUdeviceptr first = allocate(4096);
  EXPECT_EQ(cuda.cuMemFree_v2(first), CUDA_SUCCESS);
  std::set<CUdeviceptr> later;
  for (int i = 0; i < 100; ++i) later.insert(allocate(4096));
  EXPECT_EQ(later.count(first), 0u) << "a stale pointer must not meet a new allocation";
  uint32_t value = 0;
  CaptureStderr();
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(&value, first, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("allocation 1 of 4096 bytes, which was freed"));
}

TEST_F(DriverMemory, SurvivesManyAllocations) {
  for (int round = 0; round < 2000; ++round) EXPECT_EQ(cuda.cuMemFree_v2(allocate(1 << 20)), CUDA_SUCCESS);
}

TEST_F(DriverMemory, OfTheHostIsValidOnTheDeviceWhenPinned) {
  void* pinned = nullptr;
  ASSERT_EQ(cuda.cuMemHostAlloc(&pinned, 64, 0), CUDA_SUCCESS);
  const auto address = static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(pinned));
  EXPECT_EQ(cuda.cuMemsetD32Async(address, 5, 16, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(static_cast<uint32_t*>(pinned)[15], 5u);
  EXPECT_EQ(cuda.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE) << "not device memory";
  EXPECT_EQ(cuda.cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemory, OfTheHostIsValidOnTheDeviceWhenRegistered) {
  auto* add = cuda.function<CUresult(void*, size_t, unsigned)>("cuMemHostRegister_v2");
  auto* remove = cuda.function<CUresult(void*)>("cuMemHostUnregister");
  std::array<uint32_t, 16> tensor = {};
  const auto address = static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(tensor.data()));
  EXPECT_EQ(add(tensor.data(), sizeof tensor, 0), CUDA_SUCCESS);
  EXPECT_NE(add(&tensor[3], 4, 0), CUDA_SUCCESS) << "overlaps";
  EXPECT_EQ(cuda.cuMemsetD32Async(address, 5, 16, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(tensor, Each(5u));
  EXPECT_EQ(remove(tensor.data()), CUDA_SUCCESS);
  EXPECT_NE(remove(tensor.data()), CUDA_SUCCESS);
  CaptureStderr();
  EXPECT_EQ(cuda.cuMemsetD32Async(address, 6, 16, nullptr), CUDA_ERROR_INVALID_VALUE);
  GetCapturedStderr();
}

TEST_F(DriverMemory, KnowsWhereAPointerBelongs) {
  const CUdeviceptr address = allocate(64);
  void* pinned = nullptr;
  ASSERT_EQ(cuda.cuMemHostAlloc(&pinned, 64, 0), CUDA_SUCCESS);
  unsigned type = 0;
  CUcontext owner = nullptr;
  int ordinal = -1;
  EXPECT_EQ(cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 63), CUDA_SUCCESS);
  EXPECT_EQ(type, 2u);
  EXPECT_EQ(cuda.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address), CUDA_SUCCESS);
  EXPECT_EQ(owner, context);
  EXPECT_EQ(cuda.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address), CUDA_SUCCESS);
  EXPECT_EQ(ordinal, 0);
  EXPECT_EQ(cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<uintptr_t>(pinned)),
            CUDA_SUCCESS);
  EXPECT_EQ(type, 1u);
  CUdeviceptr there = 0;
  for (const CUdeviceptr known : {address + 4, static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(pinned))}) {
    EXPECT_EQ(cuda.cuPointerGetAttribute(&there, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, known), CUDA_SUCCESS);
    EXPECT_EQ(there, known);
  }
  EXPECT_EQ(cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 64),
            CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  EXPECT_EQ(cuda.cuMemGetAddressRange_v2(&begin, &bytes, address + 63), CUDA_SUCCESS);
  EXPECT_EQ(begin, address);
  EXPECT_EQ(bytes, 64U);
  EXPECT_EQ(cuda.cuMemGetAddressRange_v2(&begin, &bytes, address + 64), CUDA_ERROR_NOT_FOUND);
  CUmemoryPool pool = reinterpret_cast<CUmemoryPool>(8);
  EXPECT_EQ(cuda.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address), CUDA_SUCCESS);
  EXPECT_EQ(pool, nullptr);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuda.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address)), CUDA_ERROR_INVALID_VALUE)
      << "no memory of this device is mapped from handles";
  EXPECT_EQ(cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<uintptr_t>(&type)),
            CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_memory_test
