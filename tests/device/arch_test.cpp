#include "kiln/device/arch.h"

#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::device::arch_test {
namespace {

TEST(Arch, HasASuffixWhereAnArchitectureSpecificSetExists) {
  EXPECT_EQ(real_arch(9, 0), "sm_90a");
  EXPECT_EQ(real_arch(12, 0), "sm_120a");
  EXPECT_EQ(real_arch(8, 9), "sm_89");
  EXPECT_EQ(real_arch(9, 0, ArchFeatures::portable), "sm_90");
  EXPECT_EQ(virtual_arch(10, 0), "compute_100");
  EXPECT_EQ(virtual_arch(10, 0, ArchFeatures::specific), "compute_100a");
}

TEST(Arch, NumberReadsEveryForm) {
  EXPECT_EQ(arch_number("sm_75"), 75);
  EXPECT_EQ(arch_number("sm_90a"), 90);
  EXPECT_EQ(arch_number("sm_100f"), 100);
  EXPECT_EQ(arch_number("compute_121"), 121);
}

TEST(Arch, RefusesWhatIsNoName) {
  for (const char* name : {"", "sm_", "90", "sm_a", "sm_9", "sm_90b", "sm_90aa", "compute90", "SM_90"}) {
    EXPECT_THROW(arch_number(name), Error) << name;
  }
}

TEST(Arch, TellsRealFromVirtual) {
  EXPECT_TRUE(is_real_arch("sm_80"));
  EXPECT_FALSE(is_real_arch("compute_80"));
}

}  // namespace
}  // namespace kiln::device::arch_test
