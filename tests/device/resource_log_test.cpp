#include "kiln/device/resource_log.h"

#include <gtest/gtest.h>

namespace kiln::device::resource_log_test {
namespace {

// Logs as NVRTC 13.0 and 11.8 wrote them for the same source: two kernels, one of which spills.
constexpr std::string_view log_of_13_0 =
    R"(ptxas warning : Value of threads per SM for entry spill is out of range. .minnctapersm will be ignored
ptxas info    : 16 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function '_Z5spillILi96EEvPfPKf' for 'sm_75'
ptxas info    : Function properties for _Z5spillILi96EEvPfPKf
ptxas         .     272 bytes stack frame, 276 bytes spill stores, 312 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 272 bytes cumulative stack size, 1024 bytes smem, 368 bytes cmem[0]
ptxas info    : Compile time = 36.854 ms
ptxas info    : Compiling entry function 'add' for 'sm_75'
ptxas info    : Function properties for add
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers, 380 bytes cmem[0]
ptxas info    : Compile time = 0.962 ms
)";

constexpr std::string_view log_of_11_8 = R"(ptxas info    : 16 bytes gmem
ptxas info    : Compiling entry function '_Z5spillILi96EEvPfPKf' for 'sm_90'
ptxas info    : Function properties for _Z5spillILi96EEvPfPKf
ptxas         .     472 bytes stack frame, 508 bytes spill stores, 744 bytes spill loads
ptxas info    : Used 32 registers, 1024 bytes smem
ptxas info    : Compiling entry function 'add' for 'sm_90'
ptxas info    : Function properties for add
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers
)";

TEST(ResourceLog, ReadsTheFormOfCuda13) {
  const auto kernels = parse_resource_log(log_of_13_0);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "_Z5spillILi96EEvPfPKf");
  EXPECT_EQ(kernels[0].arch, "sm_75");
  EXPECT_EQ(kernels[0].registers, 64);
  EXPECT_EQ(kernels[0].spill_stores, 276);
  EXPECT_EQ(kernels[0].spill_loads, 312);
  EXPECT_EQ(kernels[0].stack, 272);
  EXPECT_EQ(kernels[0].static_shared, 1024);
  EXPECT_EQ(kernels[0].constant, 368);
  EXPECT_EQ(kernels[0].barriers, 1);
  EXPECT_EQ(kernels[1].name, "add");
  EXPECT_EQ(kernels[1].registers, 12);
  EXPECT_EQ(kernels[1].spill_stores, 0);
  EXPECT_EQ(kernels[1].static_shared, 0);
  EXPECT_EQ(kernels[1].barriers, 0);
}

TEST(ResourceLog, ReadsTheFormOfCuda11) {
  const auto kernels = parse_resource_log(log_of_11_8);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].registers, 32);
  EXPECT_EQ(kernels[0].spill_loads, 744);
  EXPECT_EQ(kernels[0].static_shared, 1024);
  EXPECT_EQ(kernels[1].registers, 12);
}

TEST(ResourceLog, LeavesOutFunctionsThatKernelsCall) {
  const auto kernels = parse_resource_log(
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for helper\n"
      "ptxas         .     48 bytes stack frame, 44 bytes spill stores, 40 bytes spill loads\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 0 barriers, 56 bytes cumulative stack size");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].stack, 8);
  EXPECT_EQ(kernels[0].spill_stores, 4);
  EXPECT_EQ(kernels[0].registers, 40);
}

TEST(ResourceLog, SkipsWhatItDoesNotKnow) {
  EXPECT_TRUE(parse_resource_log("").empty());
  EXPECT_TRUE(parse_resource_log("user.cu(3): warning #177-D: variable was declared but never referenced\n\n").empty());
  EXPECT_TRUE(parse_resource_log("ptxas\nptxas info    :\nptxas info    : Used 7 registers\n").empty());
  const auto kernels = parse_resource_log(
      "ptxas info : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info : Function properties for k\n"
      "ptxas      . bytes stack frame, bytes spill stores, x bytes spill loads\n"
      "ptxas info : Used registers, some barriers\n"
      "ptxas info : Compiling entry function 'l");
  ASSERT_EQ(kernels.size(), 2u);
  for (const KernelResources& kernel : kernels) {
    EXPECT_EQ(kernel.registers + kernel.spill_stores + kernel.spill_loads + kernel.stack, 0);
    EXPECT_EQ(kernel.static_shared + kernel.constant + kernel.barriers, 0);
  }
}

}  // namespace
}  // namespace kiln::device::resource_log_test
