#include "kiln/generator/calibration.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kiln::calibration_test {
namespace {

TEST(Calibration, ReadsBackWhatItPrints) {
  EXPECT_EQ(Calibration::parse(Calibration{}.print()), Calibration{});
  const Calibration odd{.copy_efficiency = 0.123456789012345678,
                        .l2_bytes_per_clock = 1e300,
                        .fma_efficiency = 1.0 / 3,
                        .shared_efficiency = 2,
                        .launch_seconds = 5e-324};
  EXPECT_EQ(Calibration::parse(odd.print()), odd);
  const std::string longer = Calibration{}.print() + "5";
  EXPECT_EQ(Calibration::parse(std::string_view(longer).substr(0, longer.size() - 1)), Calibration{})
      << "what stands behind a view is none of it";
}

TEST(Calibration, RefusesEverythingElse) {
  const std::string good = Calibration{}.print();
  EXPECT_TRUE(Calibration::parse(good));
  for (const std::string& bad :
       {std::string(), good + " more=1", good.substr(5), good.substr(0, good.rfind(' ')), "copy_efficiency=1 " + good,
        std::string(
            "copy_efficiency=0.9 l2_bytes_per_clock=46.6 fma_efficiency=nan shared_efficiency=1 launch_seconds=1"),
        std::string("copy_efficiency=0.9 l2_bytes_per_clock=0 fma_efficiency=1 shared_efficiency=1 launch_seconds=1"),
        std::string("copy_efficiency=-1 l2_bytes_per_clock=1 fma_efficiency=1 shared_efficiency=1 launch_seconds=1"),
        std::string("copy_efficiency= l2_bytes_per_clock=1 fma_efficiency=1 shared_efficiency=1 launch_seconds=1"),
        std::string("copy_efficiency=1e999 l2_bytes_per_clock=1 fma_efficiency=1 shared_efficiency=1 launch_seconds=1"),
        std::string("copy_efficiency l2_bytes_per_clock=1 fma_efficiency=1 shared_efficiency=1 launch_seconds=1")}) {
    EXPECT_FALSE(Calibration::parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace kiln::calibration_test
