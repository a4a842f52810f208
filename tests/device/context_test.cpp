#include "kiln/device/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "fake_driver.h"

namespace kiln::device {
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

}  // namespace
}  // namespace kiln::device
