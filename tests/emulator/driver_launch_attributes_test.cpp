// Launches with attributes through the driver API: blocks that wait for each other, and what changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_launch_attributes_test {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr auto too_large = static_cast<CUresult>(720);  // CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE

// Each block puts 100 + its number into `slots`, waits until all blocks of the grid have done so, and copies the slot
// of the block behind it, the last one's being that of block 0, to `out`.
const std::string meeting_ptx = R"(
.version 7.8
.target sm_75
.address_size 64
.visible .entry meet(.param .u64 counter, .param .u64 slots, .param .u64 out)
{
  .reg .pred %p<5>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [counter];
  ld.param.u64 %rd2, [slots];
  ld.param.u64 %rd3, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra $met;
  mul.wide.u32 %rd4, %r1, 4;
  add.u64 %rd5, %rd2, %rd4;
  add.u32 %r4, %r1, 100;
  st.global.u32 [%rd5], %r4;
  membar.gl;
  atom.global.add.u32 %r5, [%rd1], 1;
$spin:
  ld.volatile.global.u32 %r6, [%rd1];
  setp.lt.u32 %p2, %r6, %r2;
  @%p2 bra $spin;
  membar.gl;
$met:
  bar.sync 0;
  setp.ne.u32 %p3, %r3, 63;
  @%p3 bra $done;
  add.u32 %r7, %r1, 1;
  rem.u32 %r8, %r7, %r2;
  mul.wide.u32 %rd6, %r8, 4;
  add.u64 %rd7, %rd2, %rd6;
  ld.global.u32 %r9, [%rd7];
  mul.wide.u32 %rd8, %r1, 4;
  add.u64 %rd9, %rd3, %rd8;
  st.global.u32 [%rd9], %r9;
$done:
  ret;
}
)";

CUlaunchAttribute cooperative(int value = 1) {
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = value;
  return attribute;
}

CUlaunchAttribute cluster(unsigned x, unsigned y, unsigned z) {
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {x, y, z};
  return attribute;
}

CUlaunchAttribute other(int id) {
  CUlaunchAttribute attribute = {};
  attribute.id = static_cast<CUlaunchAttributeID>(id);
  return attribute;
}

/// One host thread: blocks that are run one after the other can never meet.
class DriverLaunchAttributes : public DriverTest {
 protected:
  DriverLaunchAttributes()
      : DriverTest({{"KILN_EMULATOR_THREADS", "1"}, {"KILN_EMULATOR_INSTRUCTION_LIMIT", "1000000"}}) {}

  CUlaunchConfig config(unsigned blocks, std::vector<CUlaunchAttribute>& attributes) const {
    CUlaunchConfig result = {};
    result.gridDimX = blocks;
    result.gridDimY = result.gridDimZ = result.blockDimY = result.blockDimZ = 1;
    result.blockDimX = 64;
    result.attrs = attributes.data();
    result.numAttrs = static_cast<unsigned>(attributes.size());
    return result;
  }
  CUresult launch(unsigned blocks, std::vector<CUlaunchAttribute> attributes, CUstream stream = nullptr) {
    CUlaunchConfig launched = config(blocks, attributes);
    launched.hStream = stream;
    return cuda.cuLaunchKernelEx(&launched, meet_, parameters_, nullptr);
  }
  std::vector<uint32_t> slots_of_next(uint32_t blocks) {
    std::vector<uint32_t> expected;
    for (uint32_t k = 0; k < blocks; ++k) expected.push_back(100 + (k + 1) % blocks);
    return expected;
  }
  /// Words that the blocks read, with everything cleared for the next launch.
  std::vector<uint32_t> take_result(uint32_t blocks) {
    const std::vector<uint32_t> result = read(out_, blocks);
    for (const CUdeviceptr buffer : {counter_, slots_, out_}) cuda.cuMemsetD32Async(buffer, 0, 1, nullptr);
    return result;
  }

  CUfunction meet_ = function(load(meeting_ptx), "meet");
  CUdeviceptr counter_ = zeros(), slots_ = allocate(4096 * 4), out_ = allocate(4096 * 4);
  void* parameters_[3] = {&counter_, &slots_, &out_};

 private:
  CUdeviceptr zeros() {
    const CUdeviceptr word = allocate(4);
    EXPECT_EQ(cuda.cuMemsetD32Async(word, 0, 1, nullptr), CUDA_SUCCESS);
    return word;
  }
};

TEST_F(DriverLaunchAttributes, BlocksOfACooperativeLaunchWaitForEachOther) {
  for (const unsigned blocks : {1u, 7u, 132u}) {
    EXPECT_EQ(launch(blocks, {cooperative()}), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << cuda.last_fault();
    EXPECT_EQ(take_result(blocks), slots_of_next(blocks));
  }
}

TEST_F(DriverLaunchAttributes, BlocksOfSeveralHostThreadsMeetToo) {
  const Emulator many(Variables{{"KILN_EMULATOR_THREADS", "5"}});
  CUcontext of_many = nullptr;
  ASSERT_EQ(many.cuDevicePrimaryCtxRetain(&of_many, 0), CUDA_SUCCESS);
  ASSERT_EQ(many.cuCtxSetCurrent(of_many), CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction meet = nullptr;
  ASSERT_EQ(many.cuModuleLoadDataEx(&module, meeting_ptx.c_str(), 0, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(many.cuModuleGetFunction(&meet, module, "meet"), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(many.cuMemAlloc_v2(&memory, 8192), CUDA_SUCCESS);
  ASSERT_EQ(many.cuMemsetD32Async(memory, 0, 1, nullptr), CUDA_SUCCESS);
  CUdeviceptr slots = memory + 1024, out = memory + 4096;
  void* parameters[] = {&memory, &slots, &out};
  std::vector<CUlaunchAttribute> attributes = {cooperative()};
  const CUlaunchConfig launched = config(64, attributes);
  EXPECT_EQ(many.cuLaunchKernelEx(&launched, meet, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(many.cuCtxSynchronize(), CUDA_SUCCESS) << many.last_fault();
  std::vector<uint32_t> result(64);
  EXPECT_EQ(many.cuMemcpyDtoH_v2(result.data(), out, 256), CUDA_SUCCESS);
  EXPECT_EQ(result, slots_of_next(64));
}

TEST_F(DriverLaunchAttributes, BlocksOfAnyOtherLaunchNeedNotBeThereAtOnce) {
  CaptureStderr();
  EXPECT_EQ(launch(4, {}), CUDA_SUCCESS);
  GetCapturedStderr();
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_THAT(cuda.last_fault(), HasSubstr("it may never end"));
}

TEST_F(DriverLaunchAttributes, TheLastValueOfAnAttributeHolds) {
  CaptureStderr();
  EXPECT_EQ(launch(4, {cooperative(), cooperative(0)}), CUDA_SUCCESS);
  GetCapturedStderr();
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST_F(DriverLaunchAttributes, ABlockThatFaultsEndsThoseThatWaitForIt) {
  CUdeviceptr word = allocate(4);
  void* wrong[] = {&counter_, &word, &out_};  // one word for the slots of four blocks
  std::vector<CUlaunchAttribute> attributes = {cooperative()};
  const CUlaunchConfig launched = config(4, attributes);
  CaptureStderr();
  EXPECT_EQ(cuda.cuLaunchKernelEx(&launched, meet_, wrong, nullptr), CUDA_SUCCESS);
  GetCapturedStderr();
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(cuda.last_fault(), HasSubstr("block (1, 0, 0)"));
}

TEST_F(DriverLaunchAttributes, MoreBlocksThanFitAtOnceAreRefused) {
  int resident = 0;
  ASSERT_EQ(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, meet_, 64, 100000), CUDA_SUCCESS);
  EXPECT_EQ(resident, 0) << "not opted in to so much shared memory";
  ASSERT_EQ(cuda.cuFuncSetAttribute(meet_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, meet_, 64, 100000), CUDA_SUCCESS);
  ASSERT_EQ(resident, 2);
  std::vector<CUlaunchAttribute> attributes = {cooperative()};
  CUlaunchConfig launched = config(2 * 132 + 1, attributes);
  launched.sharedMemBytes = 100000;
  EXPECT_EQ(cuda.cuLaunchKernelEx(&launched, meet_, parameters_, nullptr), too_large);
  auto* const launch_cooperative =
      cuda.function<CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                             void**)>("cuLaunchCooperativeKernel");
  EXPECT_EQ(launch_cooperative(meet_, 265, 1, 1, 64, 1, 1, 100000, nullptr, parameters_), too_large);
  EXPECT_EQ(launch_cooperative(meet_, 264, 1, 1, 64, 1, 1, 100000, nullptr, parameters_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << cuda.last_fault();
  EXPECT_EQ(take_result(264), slots_of_next(264));
  const char* name = nullptr;
  EXPECT_EQ(cuda.cuGetErrorName(too_large, &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
}

TEST_F(DriverLaunchAttributes, WhatChangesNoResultIsAccepted) {
  for (const int id : {0, 1, 3, 5, 6, 8, 9, 10, 14, 16}) {
    EXPECT_EQ(launch(2, {other(id), cooperative()}), CUDA_SUCCESS) << id;
    EXPECT_EQ(take_result(2), slots_of_next(2)) << id;
  }
  EXPECT_EQ(launch(2, {cluster(1, 1, 1), cooperative()}), CUDA_SUCCESS);
  EXPECT_EQ(take_result(2), slots_of_next(2));
}

TEST_F(DriverLaunchAttributes, WhatWouldChangeTheLaunchIsRefused) {
  EXPECT_EQ(launch(2, {cluster(2, 1, 1)}), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(launch(2, {cluster(1, 1, 2)}), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(launch(2, {cluster(1, 2, 1)}), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(launch(2, {cluster(0, 1, 1)}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(2, {cluster(1, 0, 1)}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(2, {cluster(1, 1, 0)}), CUDA_ERROR_INVALID_VALUE);
  for (const int id : {7, 11, 12, 13, 15, 99, -1}) EXPECT_EQ(launch(2, {other(id)}), CUDA_ERROR_NOT_SUPPORTED) << id;
  std::vector<CUlaunchAttribute> none;
  CUlaunchConfig launched = config(2, none);
  launched.attrs = nullptr;
  launched.numAttrs = 1;
  EXPECT_EQ(cuda.cuLaunchKernelEx(&launched, meet_, parameters_, nullptr), CUDA_ERROR_INVALID_VALUE) << "no list";
  EXPECT_EQ(cuda.cuLaunchKernelEx(nullptr, meet_, parameters_, nullptr), CUDA_ERROR_INVALID_VALUE);
  launched.numAttrs = 0;
  EXPECT_EQ(cuda.cuLaunchKernelEx(&launched, nullptr, parameters_, nullptr), CUDA_ERROR_INVALID_HANDLE);
  for (unsigned CUlaunchConfig::*extent :
       {&CUlaunchConfig::gridDimX, &CUlaunchConfig::gridDimY, &CUlaunchConfig::gridDimZ, &CUlaunchConfig::blockDimX,
        &CUlaunchConfig::blockDimY, &CUlaunchConfig::blockDimZ}) {
    CUlaunchConfig wrong = launched;
    wrong.*extent = 0;
    EXPECT_EQ(cuda.cuLaunchKernelEx(&wrong, meet_, parameters_, nullptr), CUDA_ERROR_INVALID_VALUE);
  }
  CUlaunchConfig wide = launched;
  wide.sharedMemBytes = 49153;
  EXPECT_EQ(cuda.cuLaunchKernelEx(&wide, meet_, parameters_, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << "a refused launch breaks nothing";
}

TEST_F(DriverLaunchAttributes, TakeTheirParametersPackedToo) {
  CUdeviceptr packed[] = {counter_, slots_, out_};
  size_t bytes = sizeof packed;
  void* extra[] = {reinterpret_cast<void*>(1), packed, reinterpret_cast<void*>(2), &bytes, nullptr};
  std::vector<CUlaunchAttribute> attributes = {cooperative()};
  const CUlaunchConfig launched = config(3, attributes);
  EXPECT_EQ(cuda.cuLaunchKernelEx(&launched, meet_, nullptr, extra), CUDA_SUCCESS);
  EXPECT_EQ(take_result(3), slots_of_next(3));
}

TEST_F(DriverLaunchAttributes, AGraphsKernelsKeepTheirs) {
  const CUstream captured = stream(CU_STREAM_NON_BLOCKING);
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(launch(9, {cooperative()}, captured), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuda.cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(executable, captured), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamSynchronize(captured), CUDA_SUCCESS) << cuda.last_fault();
  EXPECT_EQ(take_result(9), slots_of_next(9));
  CUgraphNode node = nullptr;
  size_t count = 1;
  ASSERT_EQ(cuda.cuGraphGetNodes(graph, &node, &count), CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS changed = {};
  ASSERT_EQ(cuda.cuGraphKernelNodeGetParams(node, &changed), CUDA_SUCCESS);
  changed.gridDimX = 5;
  ASSERT_EQ(cuda.cuGraphExecKernelNodeSetParams(executable, node, &changed), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(executable, captured), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamSynchronize(captured), CUDA_SUCCESS) << cuda.last_fault();
  EXPECT_EQ(take_result(5), slots_of_next(5));
  changed.gridDimX = 1 << 20;
  EXPECT_EQ(cuda.cuGraphExecKernelNodeSetParams(executable, node, &changed), too_large);
}

TEST_F(DriverLaunchAttributes, TheDefaultStreamOfEachThreadHasAVariant) {
  auto* const launch_ex =
      cuda.function<CUresult(const CUlaunchConfig*, CUfunction, void**, void**)>("cuLaunchKernelEx_ptsz");
  std::vector<CUlaunchAttribute> attributes = {cooperative()};
  const CUlaunchConfig launched = config(3, attributes);
  EXPECT_EQ(launch_ex(&launched, meet_, parameters_, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(take_result(3), slots_of_next(3));
  EXPECT_EQ(launch_ex(nullptr, meet_, parameters_, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_launch_attributes_test
