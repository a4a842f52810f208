#include "launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::cli::launches_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Launches, OfARealDeviceAreRefused) {
  device::DeviceInfo device;
  device.name = "Kiln emulated NVIDIA A100";
  device.emulated = true;
  EXPECT_NO_THROW(require_modelled_times(device));
  device.name = "NVIDIA A100-SXM4-80GB";
  device.emulated = false;
  try {
    require_modelled_times(device);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << "wrong usage: 2";
    EXPECT_THAT(error.what(), AllOf(HasSubstr("--launches and --timeline tell modelled times"),
                                    HasSubstr("NVIDIA A100-SXM4-80GB is a real device"), HasSubstr("--device emulator"),
                                    HasSubstr("`kiln run`")));
  }
}

}  // namespace
}  // namespace kiln::cli::launches_test
