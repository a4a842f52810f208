// Work whose time no clock of the emulated device tells: the clock that reads PTX is chosen before the driver is
// opened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "error_of.h"
#include "kiln/device/event.h"
#include "kiln/device/launch.h"
#include "open_device.h"

namespace kiln::device::untimed_test {
namespace {

const bool clock_reads_ptx = setenv("KILN_EMULATOR_CLOCK", "ptx", 1) == 0;

TEST(Untimed, TensorInstructionsSayWhatTheirTimeNeeds) {
  ASSERT_TRUE(clock_reads_ptx);
  const OpenDevice open;
  if (!open.driver->is_emulated()) GTEST_SKIP() << "a real device tells all times";
  const Module module = open.load(R"(
extern "C" __global__ void plain() {}
extern "C" __global__ void multiply() {
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(0));
}
)",
                                  "multiply.cu");
  const Current current(*open.context);
  const auto milliseconds = [&](const char* kernel) {
    const Event start(open.context), end(open.context);
    start.record(nullptr);
    launch(module.function(kernel), {1}, {32}, 0, nullptr, {});
    end.record(nullptr);
    end.synchronize();
    return end.elapsed_ms(start);
  };
  EXPECT_GT(milliseconds("plain"), 0);
  const auto error = error_of<Error>([&] { milliseconds("multiply"); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.what(), testing::HasSubstr("not timed: tensor instructions need nvdisasm"));
  EXPECT_THAT(error.hint(), testing::HasSubstr("nvidia-cuda-nvdisasm"));
  EXPECT_GT(milliseconds("plain"), 0) << "later work has its time";
}

}  // namespace
}  // namespace kiln::device::untimed_test
