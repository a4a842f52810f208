// Full checks through the driver API: memory that was freed, never written, freed twice, or written by two blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_strict_test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

// copy(to, from, count): to[i] = from[i], u32.
const std::string copy_ptx = R"(
.version 7.8
.target sm_75
.address_size 64
.global .align 4 .u32 counter;
.visible .entry copy(.param .u64 to, .param .u64 from, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  ld.param.u32 %r2, [count];
  mov.u32 %r3, %tid.x;
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra $done;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r4, [%rd5];
  ld.global.u32 %r5, [counter];
  add.u32 %r4, %r4, %r5;
  st.global.u32 [%rd4], %r4;
$done:
  ret;
}
)";

class StrictDriver : public DriverTest {
 protected:
  /// One host thread: blocks run in order, and races are reported in the same place every time.
  StrictDriver() : DriverTest({{"KILN_EMULATOR_CHECK", "full"}, {"KILN_EMULATOR_THREADS", "1"}}) {}

  CUresult copy(CUdeviceptr to, CUdeviceptr from, uint32_t count, CUstream on = nullptr, uint32_t blocks = 1) {
    void* parameters[] = {&to, &from, &count};
    return cuda.cuLaunchKernel(copy_, blocks, 1, 1, 64, 1, 1, 0, on, parameters, nullptr);
  }
  CUresult upload(CUdeviceptr to, uint32_t value, size_t count) {
    const std::vector<uint32_t> values(count, value);
    return cuda.cuMemcpyHtoD_v2(to, values.data(), count * sizeof(uint32_t));
  }
  /// Output of a launch that faults; the context is broken then.
  std::string fault_of(CUdeviceptr to, CUdeviceptr from, uint32_t count, CUresult code) {
    CaptureStderr();
    EXPECT_EQ(copy(to, from, count), CUDA_SUCCESS);
    const std::string printed = GetCapturedStderr();
    EXPECT_EQ(cuda.cuCtxSynchronize(), code);
    return printed;
  }

  CUfunction copy_ = function(load(copy_ptx), "copy");
  CUdeviceptr to_ = allocate(256), from_ = allocate(256);
};

TEST_F(StrictDriver, MemoryFreshFromTheAllocatorIsUninitialised) {
  EXPECT_THAT(fault_of(to_, from_, 1, CUDA_ERROR_LAUNCH_FAILED),
              AllOf(HasSubstr("kernel copy, block (0, 0, 0), thread (0, 0, 0)"), HasSubstr("reads 4 bytes at 0x"),
                    HasSubstr("of which byte 0, 0 bytes into allocation 2 of 256 bytes, has never been written"),
                    HasSubstr("PTX line 20: ld.global.u32 %r4, [%rd5]")));
}

TEST_F(StrictDriver, TheFirstByteThatAFillLeavesOutIsNamed) {
  EXPECT_EQ(cuda.cuMemsetD8Async(from_, 1, 42, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(fault_of(to_, from_, 64, CUDA_ERROR_LAUNCH_FAILED),
              AllOf(HasSubstr("thread (10, 0, 0)"),
                    HasSubstr("of which byte 2, 42 bytes into allocation 2 of 256 bytes, has never been written")));
}

TEST_F(StrictDriver, UploadsFillsKernelsAndCopiesWrite) {
  EXPECT_EQ(upload(from_, 3, 16), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemsetD32Async(from_ + 64, 4, 16, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(copy(to_, from_, 32), CUDA_SUCCESS);
  EXPECT_EQ(copy(from_ + 128, to_, 32), CUDA_SUCCESS);
  const CUdeviceptr third = allocate(256);
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(third, from_, 256, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(copy(to_, third, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << cuda.last_fault();
  EXPECT_THAT(read(to_, 16), Each(3u));
}

TEST_F(StrictDriver, ACopyOfUninitialisedMemoryIsUninitialised) {
  EXPECT_EQ(upload(to_, 3, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(to_ + 4, from_, 4, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(fault_of(from_, to_, 64, CUDA_ERROR_LAUNCH_FAILED),
              AllOf(HasSubstr("thread (1, 0, 0)"), HasSubstr("4 bytes into allocation 1 of 256 bytes")));
}

TEST_F(StrictDriver, BlocksOfOneLaunchRaceWhereLaunchesDoNot) {
  EXPECT_EQ(upload(from_, 3, 64), CUDA_SUCCESS);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(copy(to_, from_, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << cuda.last_fault();
  CaptureStderr();
  EXPECT_EQ(copy(to_, from_, 64, nullptr, 2), CUDA_SUCCESS);
  EXPECT_THAT(GetCapturedStderr(),
              AllOf(HasSubstr("kernel copy, block (1, 0, 0), thread (0, 0, 0) (warp 0, lane 0): writes 4 bytes at 0x"),
                    HasSubstr(", 0 bytes into allocation 1 of 256 bytes, which thread (0, 0, 0) of block (0, 0, 0) has "
                              "written in this launch, and nothing orders the two (race)"),
                    HasSubstr("st.global.u32 [%rd4], %r4")));
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(StrictDriver, PinnedMemoryCountsAsWritten) {
  void* pinned = nullptr;
  ASSERT_EQ(cuda.cuMemHostAlloc(&pinned, 256, 0), CUDA_SUCCESS);
  EXPECT_EQ(copy(to_, reinterpret_cast<uintptr_t>(pinned), 64), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << cuda.last_fault();
  EXPECT_EQ(cuda.cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST_F(StrictDriver, AddressesAreNotUsedAgainWhileStalePointersMayBe) {
  EXPECT_EQ(cuda.cuMemFree_v2(from_), CUDA_SUCCESS);
  for (int k = 0; k < 200; ++k) {
    const CUdeviceptr other = allocate(256);
    EXPECT_NE(other, from_);
    EXPECT_EQ(cuda.cuMemFree_v2(other), CUDA_SUCCESS);
  }
  EXPECT_THAT(fault_of(to_, from_, 1, CUDA_ERROR_ILLEGAL_ADDRESS),
              AllOf(HasSubstr("thread (0, 0, 0)"), HasSubstr("reads 4 bytes"),
                    HasSubstr("0 bytes into allocation 2 of 256 bytes, which was freed")));
}

TEST_F(StrictDriver, FreeingTwiceOrInTheMiddleIsRefusedAndSaysWhat) {
  CaptureStderr();
  EXPECT_EQ(cuda.cuMemFree_v2(to_ + 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(GetCapturedStderr(),
              HasSubstr("no allocation's beginning: it is 4 bytes into allocation 1 of 256 bytes"));
  EXPECT_EQ(cuda.cuMemFree_v2(to_), CUDA_SUCCESS);
  CaptureStderr();
  EXPECT_EQ(cuda.cuMemFree_v2(to_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("0 bytes into allocation 1 of 256 bytes, which was freed"));
}

TEST_F(StrictDriver, ACopyFromFreedMemoryIsRefused) {
  EXPECT_EQ(cuda.cuMemFree_v2(from_), CUDA_SUCCESS);
  CaptureStderr();
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(to_, from_, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("allocation 2 of 256 bytes, which was freed"));
}

TEST_F(StrictDriver, AGraphThatOutlivesItsMemoryIsFound) {
  const CUstream own = stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  EXPECT_EQ(upload(from_, 1, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(copy(to_, from_, 64, own), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamEndCapture(own, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(executable, own), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamSynchronize(own), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(from_), CUDA_SUCCESS);
  CaptureStderr();
  EXPECT_EQ(cuda.cuGraphLaunch(executable, own), CUDA_SUCCESS);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("allocation 2 of 256 bytes, which was freed"));
  EXPECT_EQ(cuda.cuStreamSynchronize(own), CUDA_ERROR_ILLEGAL_ADDRESS);
}

class DriverUnits : public ::testing::TestWithParam<const char*> {};

TEST_P(DriverUnits, AreTheOnesAskedFor) {
  const std::string units = GetParam();
  Emulator cuda({}, false);
  CaptureStderr();
  const CUresult result = cuda.initialise({{"KILN_EMULATOR_UNITS", units}});
  const std::string said = GetCapturedStderr();
  if (result != CUDA_SUCCESS) {
    EXPECT_EQ(result, CUDA_ERROR_INVALID_VALUE);
    const auto left_out = HasSubstr("left out of this build");
    EXPECT_THAT(said, HasSubstr("KILN_EMULATOR_UNITS=" + units + " is "));
    EXPECT_THAT(said, AnyOf(left_out, HasSubstr("not among the instructions of this CPU")));
    if (units == "baseline") {
      EXPECT_THAT(said, left_out) << "every CPU has it";
    }
    GTEST_SKIP() << said;
  }
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuModuleLoadDataEx(&module, copy_ptx.c_str(), 0, nullptr, nullptr), CUDA_SUCCESS);
}
INSTANTIATE_TEST_SUITE_P(All, DriverUnits, ::testing::Values("avx512", "avx2", "baseline"));

TEST(Driver, RefusesUnknownUnitsAndListsThoseOfTheBuild) {
  const auto said_of = [](const std::string& units) {
    Emulator cuda({}, false);
    CaptureStderr();
    const CUresult result = cuda.initialise({{"KILN_EMULATOR_UNITS", units}});
    return std::pair(result, GetCapturedStderr());
  };
  const auto [result, said] = said_of("avx9");
  EXPECT_EQ(result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(said, HasSubstr("KILN_EMULATOR_UNITS=avx9 is no instruction set; expected one of "));
  for (const char* const units : {"avx512", "avx2", "baseline"}) {
    const bool works = said_of(units).first == CUDA_SUCCESS;
    EXPECT_EQ(said.find(units) != std::string::npos, works) << units << ": " << said;
  }
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_strict_test
