// A kernel that faults breaks its context for good, so this program holds one test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "kiln/device/launch.h"
#include "kiln/device/memory.h"
#include "open_device.h"

namespace kiln::device::fault_test {
namespace {

using testing::HasSubstr;

TEST(Fault, OfAKernelIsStickyAndTheEmulatorReportsWhere) {
  const OpenDevice open;
  const Module module = open.load("extern \"C\" __global__ void wild(int* p) {\n  p[threadIdx.x] = 1;\n}\n", "wild.cu");
  const Current current(*open.context);
  const auto error = error_of<DriverError>([&] {
    uint64_t nowhere = 64;
    void* parameters[] = {&nowhere};
    launch(module.function("wild"), {1}, {32}, 0, nullptr, parameters);
    open.context->synchronize();
  });
  EXPECT_TRUE(error.is_sticky()) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  if (open.driver->is_emulated()) {
    EXPECT_THAT(error.what(), HasSubstr("wild"));
    EXPECT_THAT(error.what(), HasSubstr("PTX"));
  }
  const auto later = error_of<DriverError>([&] { open.context->synchronize(); });
  EXPECT_TRUE(later.is_sticky());
  EXPECT_THAT(later.hint(), HasSubstr("the CUDA context of this process is lost"));
}

}  // namespace
}  // namespace kiln::device::fault_test
