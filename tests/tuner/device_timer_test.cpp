// Timing on a device made of host memory (tests/checking/host_driver.h).
#include "kiln/tuner/device_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host_driver.h"

namespace kiln::tuner::device_timer_test {
namespace {

using testing::ElementsAre;

class DeviceTimerTest : public testing::Test {
 protected:
  checking::HostDriver driver;
  checking::DeviceOperands operands{driver.context(), Request::parse("softmax_forward x=f32:3x7:nc")};
  std::vector<int64_t> batches;
  const checking::Checkable variant{[this](cuda_abi::CUstream, std::span<const cuda_abi::CUdeviceptr> addresses,
                                           const RunValues&, int64_t n, cuda_abi::CUdeviceptr) {
                                      EXPECT_EQ(addresses.size(), 2U);
                                      batches.push_back(n);
                                    },
                                    0};
};

TEST_F(DeviceTimerTest, TimesFromAColdCacheAfterAWarmUp) {
  EXPECT_THAT(DeviceTimer(driver.context()).time(operands, variant, 3, L2::cold), ElementsAre(2e-3, 2e-3, 2e-3));
  EXPECT_THAT(batches, ElementsAre(3, 3, 3, 3));
  // The fake's L2 has 38,000 bytes (device attribute 38).
  EXPECT_EQ(driver.flushed_bytes, 3U * 2 * 38000);
}

// Any fill does there; one comes behind what is made of constant weights.
TEST_F(DeviceTimerTest, MakesAnEmulatedDeviceColdByAWord) {
  const auto emulated = device::Driver::from_table(driver.fake.table, "an emulator", true);
  DeviceTimer timer(device::ContextHandle::acquire(device::Device(emulated, 0)));
  EXPECT_THAT(timer.time(operands, variant, 3, L2::cold), ElementsAre(2e-3, 2e-3, 2e-3));
  EXPECT_THAT(batches, ElementsAre(3, 3, 3)) << "without a warm-up";
  EXPECT_EQ(driver.flushed_bytes, (1U + 3) * 4);
  EXPECT_THAT(timer.time(operands, variant, 2, L2::warm), ElementsAre(2e-3, 2e-3));
  EXPECT_EQ(driver.flushed_bytes, (1U + 3 + 1) * 4);
}

TEST_F(DeviceTimerTest, PreparesConstantWeightsOnceAndTimesTheRest) {
  const Request request = Request::parse("conv_forward x=f32:1x3x5x5 w=f32:4x3x3x3 constant_weights");
  const checking::DeviceOperands constant(driver.context(), request);
  std::string calls;
  checking::Checkable parts([&](auto&&...) { calls += "run "; }, 0);
  parts.prepare = [&](auto&&...) { calls += "prepare "; };
  parts.run_prepared = [&](auto&&...) { calls += "prepared "; };
  EXPECT_THAT(DeviceTimer(driver.context()).time(constant, parts, 1, L2::warm), ElementsAre(2e-3));
  EXPECT_EQ(calls, "prepare prepared prepared ");
  calls.clear();
  EXPECT_THAT(DeviceTimer(driver.context()).time(operands, parts, 1, L2::warm), ElementsAre(2e-3));
  EXPECT_EQ(calls, "run run ");
}

TEST_F(DeviceTimerTest, LeavesAWarmCacheAsItIs) {
  EXPECT_THAT(DeviceTimer(driver.context()).time(operands, variant, 2, L2::warm), ElementsAre(2e-3, 2e-3));
  EXPECT_EQ(driver.flushed_bytes, 0U);
}

}  // namespace
}  // namespace kiln::tuner::device_timer_test
