#include "kiln/device/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "error_of.h"
#include "fake_driver.h"

namespace kiln::device::memory_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Buffer, IsFreedOnceHoweverOftenItMoves) {
  FakeDriver fake;
  const auto context = fake.context();
  {
    Buffer first(context, 64);
    EXPECT_EQ(first.size(), 64u);
    Buffer second(std::move(first));
    EXPECT_EQ(first.size(), 0u);  // NOLINT(bugprone-use-after-move): a moved-from buffer is empty
    EXPECT_EQ(first.address(), 0u);
    first = std::move(second);
    EXPECT_EQ(first.address(), 4096u);
  }
  EXPECT_EQ(std::count(fake.calls.begin(), fake.calls.end(), "alloc 64"), 1);
  EXPECT_EQ(std::count(fake.calls.begin(), fake.calls.end(), "free 4096"), 1);
}

TEST(Buffer, AssignmentFreesWhatWasHeld) {
  FakeDriver fake;
  const auto context = fake.context();
  Buffer buffer(context, 64);
  buffer = Buffer();
  EXPECT_THAT(fake.calls, Contains("free 4096"));
}

TEST(Buffer, KeepsItsContextAlive) {
  FakeDriver fake;
  {
    const Buffer buffer(fake.context(), 8);
    EXPECT_THAT(fake.calls, Not(Contains("release")));
  }
  EXPECT_EQ(fake.calls.back(), "release");
}

TEST(Buffer, OfNoBytesAllocatesNothing) {
  FakeDriver fake;
  const Buffer buffer(fake.context(), 0);
  EXPECT_EQ(buffer.address(), 0u);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_THAT(fake.calls, Not(Contains("alloc 0")));
}

TEST(Buffer, SaysHowMuchWasAskedForAndHowMuchIsFree) {
  FakeDriver fake;
  fake.table.cuMemAlloc_v2 = [](cuda_abi::CUdeviceptr*, size_t) { return cuda_abi::CUDA_ERROR_OUT_OF_MEMORY; };
  const auto context = fake.context();
  const auto error = error_of<DriverError>([&] { Buffer(context, 4444); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  EXPECT_THAT(error.what(), HasSubstr("cuMemAlloc of 4444 bytes"));
  EXPECT_THAT(error.what(), HasSubstr("1000 of 5000 bytes free"));
}

TEST(Buffer, ThatCannotBeFreedDoesNotThrow) {
  FakeDriver fake;
  fake.table.cuMemFree_v2 = [](cuda_abi::CUdeviceptr) { return cuda_abi::CUDA_ERROR_INVALID_VALUE; };
  const auto context = fake.context();
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(Buffer(context, 8));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cuMemFree failed while a handle was released"));
}

TEST(Copies, OfNoBytesCallNothing) {
  FakeDriver fake;
  const auto context = fake.context();
  copy_to_device(*context, 0, nullptr, 0);
  EXPECT_THAT(fake.calls, Not(Contains("upload 0")));
}

TEST(Copies, CountBytesAndNotElements) {
  FakeDriver fake;
  const Buffer buffer = upload(fake.context(), std::vector<int>{1, 2, 3});
  EXPECT_EQ(buffer.size(), 12u);
  EXPECT_THAT(fake.calls, Contains("upload 12"));
}

TEST(Copies, NameSizeAndAddressWhenTheyFail) {
  FakeDriver fake;
  fake.table.cuMemcpyHtoD_v2 = [](cuda_abi::CUdeviceptr, const void*, size_t) {
    return cuda_abi::CUDA_ERROR_INVALID_VALUE;
  };
  const auto context = fake.context();
  const int value = 0;
  const auto error = error_of([&] { copy_to_device(*context, 0xabc0, &value, sizeof value); });
  EXPECT_THAT(error.what(), HasSubstr("cuMemcpyHtoD of 4 bytes at device address 0xabc0"));
}

}  // namespace
}  // namespace kiln::device::memory_test
