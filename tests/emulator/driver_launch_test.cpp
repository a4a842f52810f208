// Launches, faults and what can be asked about them, through the driver API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_launch_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class DriverLaunch : public DriverTest {
 protected:
  DriverLaunch() = default;
  explicit DriverLaunch(const Variables& environment) : DriverTest(environment) {}

  struct Geometry {
    unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1, shared = 0;
  };
  CUresult launch(const char* kernel, const Geometry& g) {
    CUdeviceptr out = out_;
    uint32_t value = 1, count = 0;  // it stores nothing: all rows of a grid would store the same elements
    void* parameters[] = {&out, &value, &count};
    return cuda.cuLaunchKernel(function(module_, kernel), g.grid_x, g.grid_y, g.grid_z, g.block_x, g.block_y, g.block_z,
                               g.shared, nullptr, parameters, nullptr);
  }

  CUmodule module_ = load(fill_ptx);
  CUfunction fill_ = function(module_, "fill");
  CUdeviceptr out_ = allocate(4096);
};

class UncheckedDriverLaunch : public DriverLaunch {
 protected:
  UncheckedDriverLaunch() : DriverLaunch({{"KILN_EMULATOR_CHECK", "off"}}) {}
};

TEST_F(DriverLaunch, ExecutesEveryThread) {
  EXPECT_EQ(fill(fill_, out_, 7, 1000), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  std::vector<uint32_t> expected(1024, 0);
  std::fill_n(expected.begin(), 1000, 7u);
  EXPECT_EQ(read(out_, 1024), expected);
}

TEST_F(DriverLaunch, ExecutesEveryBlockThoughItCountsOnlySome) {
  const uint32_t count = 1000 * 128;
  const CUdeviceptr out = allocate(count * 4);
  EXPECT_EQ(fill(fill_, out, 9, count), CUDA_SUCCESS);
  EXPECT_THAT(read(out, count), Each(9u));
}

TEST_F(DriverLaunch, TakesItsParametersPackedToo) {
  struct {
    CUdeviceptr out;
    uint32_t value, count;
  } packed = {out_, 5, 2};
  size_t bytes = sizeof packed;
  void* extra[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &bytes, nullptr};
  EXPECT_EQ(cuda.cuLaunchKernel(fill_, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  EXPECT_THAT(read(out_, 3), ElementsAre(5u, 5u, 0u));
  bytes = 12;
  EXPECT_EQ(cuda.cuLaunchKernel(fill_, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  void* parameters[] = {&packed.out, &packed.value, &packed.count};
  EXPECT_EQ(cuda.cuLaunchKernel(fill_, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuLaunchKernel(fill_, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverLaunch, RefusesGeometryThatTheDeviceCannotRun) {
  EXPECT_EQ(launch("fill", {.grid_x = 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.grid_y = 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.grid_z = 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.block_x = 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.block_y = 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.block_z = 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.grid_x = 0x80000000}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.grid_y = 65536}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.grid_z = 65536}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.block_x = 1025}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.block_y = 1025}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.block_x = 32, .block_y = 33}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.block_z = 65}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("capped", {.block_x = 257}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("fill", {.grid_y = 3, .block_x = 8, .block_y = 8, .block_z = 16}), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << "a refused launch breaks nothing";
}

TEST_F(DriverLaunch, TakesTheLargestGeometryOfTheDevice) {
  EXPECT_EQ(launch("fill", {.block_x = 1024}), CUDA_SUCCESS);
  EXPECT_EQ(launch("fill", {.block_x = 1, .block_y = 1024}), CUDA_SUCCESS);
  EXPECT_EQ(launch("fill", {.block_x = 16, .block_z = 64}), CUDA_SUCCESS);
  EXPECT_EQ(launch("fill", {.grid_y = 65535, .block_x = 1}), CUDA_SUCCESS);
  EXPECT_EQ(launch("fill", {.grid_z = 65535, .block_x = 1}), CUDA_SUCCESS);
  EXPECT_EQ(launch("capped", {.block_x = 256}), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(DriverLaunch, RefusesBlocksOfAnotherShapeThanTheKernelRequires) {
  const CUmodule module = load(R"(.version 7.8
.target sm_90
.address_size 64
.visible .entry exact() .reqntid 32, 4 { ret; }
.visible .entry alone() .reqntid 64 .reqnctapercluster 1, 1, 1 { ret; }
.visible .entry cluster() .reqnctapercluster 2, 1, 1 { ret; }
.visible .entry sized() .explicitcluster .maxclusterrank 4 { ret; }
)");
  const auto run = [&](const char* name, unsigned x, unsigned y, unsigned z) {
    return cuda.cuLaunchKernel(function(module, name), 2, 1, 1, x, y, z, 0, nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(run("exact", 32, 4, 1), CUDA_SUCCESS);
  EXPECT_EQ(run("exact", 32, 2, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run("exact", 128, 1, 1), CUDA_ERROR_INVALID_VALUE) << "as many threads in another shape";
  EXPECT_EQ(run("exact", 32, 2, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run("alone", 64, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(run("cluster", 64, 1, 1), CUDA_ERROR_NOT_SUPPORTED) << "blocks of several to a cluster";
  EXPECT_EQ(run("sized", 64, 1, 1), CUDA_ERROR_NOT_SUPPORTED) << "a size of clusters that is given at the launch";
}

TEST_F(DriverLaunch, RefusesMoreSharedMemoryThanTheFunctionOptedInto) {
  EXPECT_EQ(launch("fill", {.shared = 49152}), CUDA_SUCCESS);
  EXPECT_EQ(launch("fill", {.shared = 49153}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("capped", {.shared = 9152}), CUDA_SUCCESS);
  EXPECT_EQ(launch("capped", {.shared = 9153}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuFuncSetAttribute(fill_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448), CUDA_SUCCESS);
  EXPECT_EQ(launch("fill", {.shared = 232448}), CUDA_SUCCESS);
}

TEST_F(DriverLaunch, RefusesHandlesThatAreNone) {
  const auto garbage = reinterpret_cast<CUfunction>(0xdeadbeef);
  EXPECT_EQ(fill(garbage, out_, 1, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(fill(nullptr, out_, 1, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(fill(fill_, out_, 1, 1, reinterpret_cast<CUstream>(fill_)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverLaunch, BeyondAnAllocationIsAFaultThatStaysUntilTheContextIsReleased) {
  const CUdeviceptr small = allocate(10 * 4);
  const CUstream other = stream();
  CaptureStderr();
  EXPECT_EQ(fill(fill_, small, 1, 11), CUDA_SUCCESS) << "launches are asynchronous: the fault shows later";
  const std::string printed = GetCapturedStderr();
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);

  const std::string report = cuda.last_fault();
  EXPECT_THAT(report, AllOf(HasSubstr("fill"), HasSubstr("past the end of allocation 2 of 40 bytes")));
  EXPECT_THAT(printed, AllOf(StartsWith("kiln emulator: "), HasSubstr(report)));

  CUdeviceptr address = 0;
  uint32_t value = 0;
  CUevent created = nullptr;
  CUmodule module = nullptr;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&address, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda.cuMemFree_v2(small), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(&value, small, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(fill(fill_, out_, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda.cuStreamSynchronize(other), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda.cuStreamQuery(other), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda.cuEventCreate(&created, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda.cuModuleLoadDataEx(&module, fill_ptx.c_str(), 0, nullptr, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);

  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuda.last_fault(), report) << "the report outlives the context";
  EXPECT_EQ(fill(fill_, out_, 1, 1), CUDA_ERROR_INVALID_HANDLE) << "functions do not";
  EXPECT_EQ(fill(function(load(fill_ptx), "fill"), allocate(4), 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(DriverLaunch, OnFreedMemoryIsAFaultThatNamesTheAllocation) {
  ASSERT_EQ(cuda.cuMemFree_v2(out_), CUDA_SUCCESS);
  CaptureStderr();
  EXPECT_EQ(fill(fill_, out_, 1, 1), CUDA_SUCCESS);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("allocation 1 of 4096 bytes, which was freed"));
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(DriverLaunch, OnHostMemoryThatIsNotRegisteredIsAFault) {
  std::vector<uint32_t> host(32);
  CaptureStderr();
  EXPECT_EQ(fill(fill_, reinterpret_cast<uintptr_t>(host.data()), 1, 32), CUDA_SUCCESS);
  GetCapturedStderr();
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(host, Each(0u));
}

TEST_F(UncheckedDriverLaunch, MayUseAnyMemoryOfTheProcess) {
  std::vector<uint32_t> host(32);
  EXPECT_EQ(fill(fill_, reinterpret_cast<uintptr_t>(host.data()), 1, 32), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(host, Each(1u));
}

TEST_F(DriverLaunch, BreaksOnlyTheContextThatItFaultsIn) {
  auto* create = cuda.function<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2");
  CUcontext other = nullptr;
  ASSERT_EQ(create(&other, 0, 0), CUDA_SUCCESS);
  CaptureStderr();
  EXPECT_EQ(fill(function(load(fill_ptx), "fill"), out_, 1, 1), CUDA_SUCCESS) << "memory of the primary context";
  GetCapturedStderr();
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(fill(fill_, out_, 1, 1), CUDA_SUCCESS);
}

TEST_F(DriverLaunch, TellsWhatItDidAndWhatItWouldHaveCost) {
  EXPECT_EQ(cuda.last_launch(), "");
  EXPECT_EQ(fill(fill_, out_, 7, 1000), CUDA_SUCCESS);
  const auto launched = nlohmann::json::parse(cuda.last_launch());
  EXPECT_EQ(launched["device"], "Kiln emulated NVIDIA H200");
  EXPECT_EQ(launched["kernel"], "fill");
  EXPECT_EQ(launched["grid"], nlohmann::json({8, 1, 1}));
  EXPECT_EQ(launched["block"], nlohmann::json({128, 1, 1}));
  EXPECT_EQ(launched["occupancy"]["blocks_per_multiprocessor"], 16);
  EXPECT_EQ(launched["counters"]["blocks_total"], 8);
  EXPECT_GT(launched["counters"]["issued"], 0);
  EXPECT_GT(launched["modelled_time"]["seconds"], launched["modelled_time"]["launch"]);
}

TEST_F(DriverLaunch, TellsNoTimeOfTensorInstructions) {
  const CUfunction multiply = function(load(R"(
.version 7.8
.target sm_80
.address_size 64
.visible .entry multiply()
{
.reg .b32 %r<3>;
.reg .f32 %f<4>;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3};
ret;
}
)"),
                                       "multiply");
  const CUevent before = event(), between = event(), after = event();
  EXPECT_EQ(cuda.cuEventRecord(before, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(fill(fill_, out_, 7, 1000), CUDA_SUCCESS);
  EXPECT_EQ(cuda.not_timed(), "");
  EXPECT_EQ(cuda.cuEventRecord(between, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuLaunchKernel(multiply, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(after, nullptr), CUDA_SUCCESS);
  const auto launched = nlohmann::json::parse(cuda.last_launch());
  EXPECT_EQ(launched["counters"]["tensor"], 1);
  EXPECT_EQ(launched["counters"]["tensor_multiply_adds"], 16 * 8 * 8);
  EXPECT_EQ(launched["modelled_time"],
            nlohmann::json({{"clock", "none"}, {"not_timed", "tensor instructions need nvdisasm"}}));
  EXPECT_GT(elapsed(before, between), 0);
  float milliseconds = 0;
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, before, after), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuda.not_timed(), "tensor instructions need nvdisasm");
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, between, after), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(DriverLaunch, TellsAllCountersByNameInOneOrder) {
  EXPECT_EQ(fill(fill_, out_, 7, 1000), CUDA_SUCCESS);
  const auto launched = nlohmann::ordered_json::parse(cuda.last_launch());
  std::vector<std::string> names;
  for (const auto& [name, count] : launched["counters"].items()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("issued", "fma_f32", "fma_f16", "fma_f64", "integer", "special", "conversion",
                                 "control", "warp_exchange", "tensor", "global_load", "global_store", "global_atomic",
                                 "shared_load", "shared_store", "shared_atomic", "local_access", "constant_access",
                                 "global_sectors", "unique_load_sectors", "unique_store_sectors", "block_sectors",
                                 "shared_wavefronts", "active_lanes", "barriers", "tensor_multiply_adds",
                                 "matrix_loads", "matrix_stores", "blocks_total", "blocks_counted"));
}

TEST_F(DriverLaunch, TellsOfAllSinceThatWasAsked) {
  const auto take = [&] {
    return nlohmann::json::parse(cuda.function<const char*()>("kiln_emulator_launches_json")());
  };
  EXPECT_EQ(take(), nlohmann::json::array());
  const auto launch = [&](uint32_t threads) { EXPECT_EQ(fill(fill_, out_, 7, threads), CUDA_SUCCESS); };
  launch(1000), launch(200);
  const nlohmann::json two = take();
  ASSERT_EQ(two.size(), 2);
  EXPECT_EQ(two[0]["grid"][0], 8);
  EXPECT_EQ(two[1]["grid"][0], 2);
  EXPECT_EQ(take(), nlohmann::json::array());
  EXPECT_EQ(nlohmann::json::parse(cuda.last_launch()), two[1]) << "who asks for the last one still gets it";
  launch(100);
  EXPECT_EQ(take().size(), 1);
  for (int i = 0; i < 300; ++i) launch(i < 44 ? 1000 : 100);
  const nlohmann::json latest = take();
  ASSERT_EQ(latest.size(), 256);
  EXPECT_EQ(latest[0]["grid"][0], 1);
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_launch_test
