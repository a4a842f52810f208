#include "kiln/device/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "fake_driver.h"

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

// What the driver says of an address, and how often it was asked.
thread_local cuda_abi::CUresult memory_result = cuda_abi::CUDA_SUCCESS;
thread_local unsigned memory_type = cuda_abi::CU_MEMORYTYPE_DEVICE;
thread_local cuda_abi::CUdeviceptr shift = 0;  // from a host address to the device's for the same memory
thread_local int questions = 0;

class Reach : public testing::Test {
 protected:
  Reach() {
    memory_result = cuda_abi::CUDA_SUCCESS;
    memory_type = cuda_abi::CU_MEMORYTYPE_DEVICE;
    shift = 0;
    questions = 0;
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
      return memory_result;
    };
  }

  FakeDriver fake_;
};

TEST_F(Reach, OfDeviceMemoryIsAskedOncePerPage) {
  const auto context = fake_.context();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(context->reaches(0x7000));
    EXPECT_TRUE(context->reaches(0x7ffc));
  }
  EXPECT_EQ(questions, 1);
  EXPECT_TRUE(context->reaches(0x8000));
  EXPECT_EQ(questions, 2);
}

TEST_F(Reach, EndsAtMemoryThatTheDriverDoesNotKnow) {
  memory_result = cuda_abi::CUDA_ERROR_INVALID_VALUE;
  const auto context = fake_.context();
  EXPECT_FALSE(context->reaches(0x7000));
  memory_result = cuda_abi::CUDA_SUCCESS;  // the application has registered it
  EXPECT_TRUE(context->reaches(0x7000));
}

TEST_F(Reach, TakesInHostMemoryThatTheDriverKnows) {
  memory_type = cuda_abi::CU_MEMORYTYPE_HOST;
  const auto context = fake_.context();
  EXPECT_TRUE(context->reaches(0x7000));
  shift = 0x100000;
  EXPECT_FALSE(context->reaches(0x9000)) << "the device has it at another address";
}

TEST_F(Reach, TakesInAllOfTheHostWhereTheDeviceSaysSo) {
  memory_result = cuda_abi::CUDA_ERROR_INVALID_VALUE;
  fake_.table.cuDeviceGetAttribute = [](int* value, cuda_abi::CUdevice_attribute attribute, cuda_abi::CUdevice) {
    *value = attribute == cuda_abi::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS ? 1 : 0;
    return cuda_abi::CUDA_SUCCESS;
  };
  EXPECT_TRUE(fake_.context()->reaches(0x7000));
}

TEST_F(Reach, IsLeftToTheLaunchWhereTheDriverCannotTell) {
  memory_result = cuda_abi::CUDA_ERROR_ILLEGAL_ADDRESS;  // an earlier fault
  const auto context = fake_.context();
  EXPECT_TRUE(context->reaches(0x7000));
  EXPECT_TRUE(context->reaches(0x7000));
  EXPECT_EQ(questions, 2) << "not remembered";
}

}  // namespace
}  // namespace kiln::device::context_test
