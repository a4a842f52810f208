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
  const Calibration with_tensor_cores{.tf32_efficiency = 0.98, .f16_efficiency = 0.5, .int8_efficiency = 1.01};
  EXPECT_EQ(Calibration::parse(with_tensor_cores.print()), with_tensor_cores);
  EXPECT_EQ(with_tensor_cores.print(),
            Calibration{}.print() + " tf32_efficiency=0.98 f16_efficiency=0.5 int8_efficiency=1.01");
  const std::string longer = Calibration{}.print() + "5";
  EXPECT_EQ(Calibration::parse(std::string_view(longer).substr(0, longer.size() - 1)), Calibration{})
      << "what stands behind a view is none of it";
}

TEST(Calibration, HasAShareOfTheUnitsOfEachClass) {
  const Calibration reached{.fma_efficiency = 0.1,
                            .tf32_efficiency = 0.2,
                            .f16_efficiency = 0.3,
                            .fp8_efficiency = 0.4,
                            .int8_efficiency = 0.5};
  const auto share = [&](MathClass math) { return reached.*Calibration::share_of(math); };
  EXPECT_EQ(share(MathClass::f32_lanes), 0.1);
  EXPECT_EQ(share(MathClass::tensor_tf32), 0.2);
  EXPECT_EQ(share(MathClass::tensor_f16), 0.3);
  EXPECT_EQ(share(MathClass::tensor_fp8), 0.4);
  EXPECT_EQ(share(MathClass::tensor_int8), 0.5);
}

TEST(Calibration, RefusesEverythingElse) {
  const std::string good = Calibration{}.print();
  EXPECT_TRUE(Calibration::parse(good));
  for (const std::string& bad :
       {std::string(), good + " more=1", good.substr(5), good.substr(0, good.rfind(' ')), good + " f16_efficiency=0",
        good + " f16_efficiency=1 tf32_efficiency=1", good + " f16_efficiency=1 f16_efficiency=1",
        good + " f16_efficiency", "f16_efficiency=1 " + good, "copy_efficiency=1 " + good,
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
