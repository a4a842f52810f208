#include "kiln/device/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "error_of.h"
#include "fake_driver.h"
#include "kiln/device/memory.h"

namespace kiln::device::context_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ContextHandle, RetainsThePrimaryContextUntilItsLastOwnerIsGone) {
  FakeDriver fake;
  auto context = fake.context();
  EXPECT_TRUE(context->is_primary());
  auto other = context;
  context.reset();
  EXPECT_THAT(fake.calls, ElementsAre("retain"));
  other.reset();
  EXPECT_THAT(fake.calls, ElementsAre("retain", "release"));
}

TEST(ContextHandle, WorksInTheCallersContextAndLeavesItToTheCaller) {
  FakeDriver fake;
  fake.contexts = {10};  // a caller's context of device 0
  {
    const auto context = fake.context();
    EXPECT_FALSE(context->is_primary());
    const Current current(*context);
  }
  EXPECT_THAT(fake.calls, IsEmpty());
}

TEST(ContextHandle, TakesThePrimaryContextWhereTheCallersIsOfAnotherDevice) {
  FakeDriver fake;
  fake.contexts = {11};  // a caller's context of device 1
  EXPECT_TRUE(fake.context()->is_primary());
}

TEST(Current, PutsBackWhatWasCurrentBefore) {
  FakeDriver fake;
  fake.contexts = {11};
  const auto context = fake.context();
  {
    const Current current(*context);
    EXPECT_THAT(fake.contexts, ElementsAre(11, 100));
    const Current nested(*context);  // already current: nothing to push
    EXPECT_THAT(fake.contexts, ElementsAre(11, 100));
  }
  EXPECT_THAT(fake.contexts, ElementsAre(11));
}

TEST(Current, PutsBackWhatWasCurrentAfterAnError) {
  FakeDriver fake;
  fake.table.cuCtxSynchronize = [] { return cuda_abi::CUDA_ERROR_ILLEGAL_ADDRESS; };
  const auto context = fake.context();
  const auto error = error_of<DriverError>([&] { context->synchronize(); });
  EXPECT_THAT(error.what(), testing::HasSubstr("cuCtxSynchronize of device 0 (Fake GPU"));
  EXPECT_TRUE(error.is_sticky());
  EXPECT_THAT(fake.contexts, IsEmpty());
}

TEST(Current, ReportsAContextThatCannotBeMadeCurrent) {
  FakeDriver fake;
  fake.table.cuCtxPushCurrent_v2 = [](cuda_abi::CUcontext) { return cuda_abi::CUDA_ERROR_INVALID_CONTEXT; };
  const auto context = fake.context();
  EXPECT_THROW(Current{*context}, DriverError);
}

// Answers of the driver about an address, and how often it was asked.
thread_local cuda_abi::CUresult memory_result = cuda_abi::CUDA_SUCCESS;
thread_local unsigned memory_type = cuda_abi::CU_MEMORYTYPE_DEVICE;
thread_local cuda_abi::CUdeviceptr shift = 0;  // from a host address to the device's for the same memory
thread_local int questions = 0;
thread_local std::vector<ContextHandle::Allocation> allocations;
thread_local bool mapped = false;     // all of them by handles
thread_local bool from_pool = false;  // all of them

class Reach : public testing::Test {
 protected:
  Reach() {
    memory_result = cuda_abi::CUDA_SUCCESS;
    memory_type = cuda_abi::CU_MEMORYTYPE_DEVICE;
    shift = 0;
    questions = 0;
    allocations = {{0x7000, 0x3000}};
    mapped = from_pool = false;
    fake_.table.cuMemGetAddressRange_v2 = [](cuda_abi::CUdeviceptr* base, size_t* bytes,
                                             cuda_abi::CUdeviceptr address) {
      for (const ContextHandle::Allocation& one : allocations) {
        if (address < one.begin || address >= one.begin + one.bytes) continue;
        *base = one.begin;
        *bytes = one.bytes;
        return cuda_abi::CUDA_SUCCESS;
      }
      return cuda_abi::CUDA_ERROR_NOT_FOUND;
    };
    fake_.table.cuMemRetainAllocationHandle = [](cuda_abi::CUmemGenericAllocationHandle* handle, void*) {
      *handle = 5;
      return mapped ? note("retain handle") : cuda_abi::CUDA_ERROR_INVALID_VALUE;
    };
    fake_.table.cuMemRelease = [](cuda_abi::CUmemGenericAllocationHandle handle) {
      return note(handle == 5 ? "release handle" : "release another handle");
    };
    fake_.table.cuDeviceGetAttribute = [](int* value, cuda_abi::CUdevice_attribute, cuda_abi::CUdevice) {
      *value = 0;
      return cuda_abi::CUDA_SUCCESS;
    };
    fake_.table.cuPointerGetAttribute = [](void* value, cuda_abi::CUpointer_attribute attribute,
                                           cuda_abi::CUdeviceptr address) {
      ++questions;
      if (attribute == cuda_abi::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) *static_cast<unsigned*>(value) = memory_type;
      if (attribute == cuda_abi::CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
        *static_cast<cuda_abi::CUdeviceptr*>(value) = address + shift;
      }
      if (attribute == cuda_abi::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) {
        *static_cast<cuda_abi::CUmemoryPool*>(value) = reinterpret_cast<cuda_abi::CUmemoryPool>(from_pool ? 8 : 0);
      }
      return memory_result;
    };
  }

  FakeDriver fake_;
};

TEST_F(Reach, OfDeviceMemoryIsAskedOncePerRange) {
  const auto context = fake_.context();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(context->reaches(0x7000, 64));
  EXPECT_EQ(questions, 1);
  EXPECT_TRUE(context->reaches(0x7000, 128));
  EXPECT_EQ(questions, 2);
}

TEST_F(Reach, EndsWithTheAllocation) {
  const auto context = fake_.context();
  EXPECT_TRUE(context->reaches(0x7000, 0x3000));
  EXPECT_FALSE(context->reaches(0x7000, 0x3001));
  EXPECT_TRUE(context->reaches(0x9ff0, 16));
  EXPECT_FALSE(context->reaches(0x9ff0, 17));
  EXPECT_FALSE(context->reaches(0x9ff0, 17)) << "a refusal is not remembered";
  const auto allocation = context->short_allocation(0x9ff0, 17);
  ASSERT_TRUE(allocation);
  EXPECT_EQ(allocation->begin, 0x7000U);
  EXPECT_EQ(allocation->bytes, 0x3000U);
  allocations.push_back({0xa000, 0x1000});
  EXPECT_FALSE(context->reaches(0x9ff0, 17)) << "the neighbour is another allocation";
  allocations = {{0x7000, 0x8000}};
  EXPECT_TRUE(context->reaches(0x9ff0, 17)) << "freed, and allocated anew";
}

TEST_F(Reach, IsAskedAnewWhenTheContextHasFreedMemory) {
  const auto context = fake_.context();
  EXPECT_TRUE(context->reaches(0x7000, 0x3000));
  allocations = {{0x7000, 0x1000}};
  { const Buffer freed(context, 64); }
  EXPECT_FALSE(context->reaches(0x7000, 0x3000)) << "its address has a smaller allocation now";
  EXPECT_TRUE(context->reaches(0x7000, 0x1000));
  fake_.table.cuMemHostRegister_v2 = [](void*, size_t, unsigned) { return note("register"); };
  fake_.table.cuMemHostUnregister = [](void*) { return note("unregister"); };
  const auto with_registration = fake_.context();
  EXPECT_TRUE(with_registration->reaches(0x7000, 0x1000));
  memory_result = cuda_abi::CUDA_ERROR_INVALID_VALUE;
  std::array<std::byte, 64> host{};
  { const RegisteredRange unregistered(with_registration, host.data(), host.size()); }
  EXPECT_FALSE(with_registration->reaches(0x7000, 0x1000));
}

TEST_F(Reach, IsToldWithoutWrappingAround) {
  EXPECT_FALSE(fake_.context()->reaches(0x7000, ~uint64_t{0} - 0x10));
}

TEST_F(Reach, GoesOnThroughPiecesThatAreMappedSideBySide) {
  allocations = {{0x7000, 0x1000}, {0x8000, 0x1000}, {0x9000, 0x1000}};
  mapped = true;
  const auto context = fake_.context();
  fake_.calls.clear();
  EXPECT_TRUE(context->reaches(0x7800, 0x2800));
  EXPECT_EQ(std::count(fake_.calls.begin(), fake_.calls.end(), "retain handle"), 2);
  EXPECT_EQ(std::count(fake_.calls.begin(), fake_.calls.end(), "release handle"), 2) << "each is given back";
  EXPECT_FALSE(context->reaches(0x7800, 0x2801)) << "there is no fourth piece";
  const auto last = context->short_allocation(0x7800, 0x2801);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->begin, 0x9000U);
}

TEST_F(Reach, GoesOnThroughMemoryOfAPool) {
  allocations = {{0x7000, 0x1000}, {0x8000, 0x1000}};
  from_pool = true;
  EXPECT_TRUE(fake_.context()->reaches(0x7800, 0x1800));
}

TEST_F(Reach, IsNotHeldAgainstASizeThatTheDriverDoesNotTell) {
  allocations.clear();
  EXPECT_TRUE(fake_.context()->reaches(0x7000, 1 << 30));
  fake_.table.cuMemGetAddressRange_v2 = [](cuda_abi::CUdeviceptr*, size_t*, cuda_abi::CUdeviceptr) {
    return cuda_abi::CUDA_SUCCESS;  // and nothing is said
  };
  EXPECT_TRUE(fake_.context()->reaches(0x7000, 1 << 30));
}

TEST_F(Reach, EndsWithTheAllocationWhereAnOlderDriverKnowsNoHandles) {
  allocations.push_back({0xa000, 0x1000});  // a neighbour
  const auto release = fake_.table.cuMemRelease;
  fake_.table.cuMemRelease = nullptr;
  EXPECT_FALSE(fake_.context()->reaches(0x7000, 0x3001));
  fake_.table.cuMemRelease = release;
  fake_.table.cuMemRetainAllocationHandle = nullptr;
  EXPECT_FALSE(fake_.context()->reaches(0x7000, 0x3001));
}

TEST_F(Reach, EndsAtMemoryThatTheDriverDoesNotKnow) {
  memory_result = cuda_abi::CUDA_ERROR_INVALID_VALUE;
  const auto context = fake_.context();
  EXPECT_FALSE(context->reaches(0x7000, 64));
  memory_result = cuda_abi::CUDA_SUCCESS;  // the application has registered it
  EXPECT_TRUE(context->reaches(0x7000, 64));
}

TEST_F(Reach, TakesInHostMemoryThatTheDriverKnows) {
  memory_type = cuda_abi::CU_MEMORYTYPE_HOST;
  const auto context = fake_.context();
  EXPECT_TRUE(context->reaches(0x7000, 64));
  EXPECT_TRUE(context->reaches(0x7000, 0x9000)) << "two registered ranges may lie side by side";
  shift = 0x100000;
  EXPECT_FALSE(context->reaches(0x9000, 64)) << "the device has it at another address";
}

TEST_F(Reach, TakesInAllOfTheHostWhereTheDeviceSaysSo) {
  memory_result = cuda_abi::CUDA_ERROR_INVALID_VALUE;
  fake_.table.cuDeviceGetAttribute = [](int* value, cuda_abi::CUdevice_attribute attribute, cuda_abi::CUdevice) {
    *value = attribute == cuda_abi::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS ? 1 : 0;
    return cuda_abi::CUDA_SUCCESS;
  };
  EXPECT_TRUE(fake_.context()->reaches(0x7000, 64));
}

TEST_F(Reach, IsLeftToTheLaunchWhereTheDriverCannotTell) {
  memory_result = cuda_abi::CUDA_ERROR_ILLEGAL_ADDRESS;  // an earlier fault
  const auto context = fake_.context();
  EXPECT_TRUE(context->reaches(0x7000, 64));
  EXPECT_TRUE(context->reaches(0x7000, 64));
  EXPECT_EQ(questions, 2) << "not remembered";
}

}  // namespace
}  // namespace kiln::device::context_test
