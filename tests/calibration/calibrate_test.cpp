#include "kiln/calibration/calibrate.h"

#include <gtest/gtest.h>

#include "kiln/base/environment.h"

namespace kiln::calibration::calibrate_test {
namespace {

// One run for all tests: it takes a second or two on the emulated device.
class Calibrated : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Environment environment = Environment::read();
    const auto driver = device::Driver::open({environment.driver});
    nvrtc_ = device::Nvrtc::open({environment.nvrtc});
    context_ = device::ContextHandle::acquire(device::Device(driver, 0));
    findings_ = calibrate(context_, *nvrtc_);
  }
  static void TearDownTestSuite() { context_.reset(); }

  const device::DeviceInfo& info() const { return context_->device().info(); }

  static inline std::shared_ptr<const device::ContextHandle> context_;
  static inline std::shared_ptr<const device::Nvrtc> nvrtc_;
  static inline Findings findings_;
};

// A device that calibrates far beyond its own figures, or far below, was not measured but misread.
TEST_F(Calibrated, EveryFigureIsPlausible) {
  const Calibration& reached = findings_.calibration;
  EXPECT_GT(reached.copy_efficiency, 0.4);
  EXPECT_LT(reached.copy_efficiency, 1.05);
  EXPECT_GT(reached.fma_efficiency, 0.4);
  EXPECT_LT(reached.fma_efficiency, 1.05);
  EXPECT_GT(reached.shared_efficiency, 0.4);
  EXPECT_LT(reached.shared_efficiency, 1.05);
  EXPECT_GT(reached.l2_bytes_per_clock, 10);
  EXPECT_LT(reached.l2_bytes_per_clock, 130);
  EXPECT_GT(reached.launch_seconds, 1e-7);
  EXPECT_LT(reached.launch_seconds, 1e-4);
  for (const TensorRate& rate : findings_.tensor) {
    const double share = reached.*Calibration::share_of(rate.math);
    EXPECT_GT(share, 0.2) << rate.factors;  // GeForce cards have half of it with sums in f32
    EXPECT_LT(share, 1.05) << rate.factors;
  }
  EXPECT_EQ(Calibration::parse(reached.print()), reached);
}

TEST_F(Calibrated, BuffersBeyondL2AreNotReadFasterThanThoseInside) {
  ASSERT_EQ(findings_.reads.size(), 8u);
  EXPECT_LE(findings_.reads.back().bytes_per_second, 1.02 * findings_.reads.front().bytes_per_second);
  EXPECT_GT(findings_.reads.back().bytes, info().l2_bytes);
  EXPECT_LT(findings_.reads.front().bytes, info().l2_bytes / 4);
  for (size_t i = 0; i < 3; ++i) {  // up to half of L2, so often that the first time does not count
    EXPECT_GT(findings_.reads[i].bytes_per_second, 1.5 * findings_.reads.back().bytes_per_second) << i;
  }
  EXPECT_EQ(findings_.l2_bytes_per_second, findings_.reads[1].bytes_per_second) << "that of a quarter of L2";
}

}  // namespace
}  // namespace kiln::calibration::calibrate_test
