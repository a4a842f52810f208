// What a launch leaves in L2 for the next one of its stream, by the clock that reads machine code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clock_fixture.h"

namespace kiln::emulator::testing {
namespace {

// A product of two launches, as Kiln splits sums: `store` writes parts, `sum` adds them. `step` works in place.
const std::string kernels = R"(
extern "C" __global__ void store(float* parts, float value) {
  parts[blockIdx.x * blockDim.x + threadIdx.x] = value + threadIdx.x;
}
extern "C" __global__ void sum(float* out, const float* parts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, count = gridDim.x * blockDim.x;
  float x = 0;
  for (int part = 0; part < 4; ++part) x += parts[part * count + i];
  out[i] = x;
}
extern "C" __global__ void step(float* x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] *= 0.5f;
}
)";

constexpr unsigned blocks = 1024, threads = 256;
constexpr size_t part = size_t{blocks} * threads * 4;  // bytes: 1 MB, of an L2 of 40 MB

class LeftInL2 : public ClockTest {
 protected:
  LeftInL2() : ClockTest(kernels) {
    EXPECT_EQ(time_only_(1), 1);  // nothing has to be run for the time
  }
  ~LeftInL2() override { time_only_(0); }

  nlohmann::json store(CUdeviceptr parts, unsigned count = 4, CUstream on = nullptr) {
    float value = 1;
    return run("store", {&parts, &value}, count * blocks, threads, 0, on);
  }
  nlohmann::json sum(CUdeviceptr out, CUdeviceptr parts, CUstream on = nullptr) {
    return run("sum", {&out, &parts}, blocks, threads, 0, on);
  }

  int (*time_only_)(int) = cuda.function<int(int)>("kiln_emulator_time_only");
  CUdeviceptr parts_ = allocate(4 * part), others_ = allocate(4 * part), out_ = allocate(part);
};

double seconds(const nlohmann::json& told) {
  return told["seconds"].get<double>();
}

TEST_F(LeftInL2, IsNotLoadedFromDram) {
  store(others_);
  const nlohmann::json cold = sum(out_, parts_);
  EXPECT_EQ(cold["hits"]["l2"], 0);
  store(parts_);
  const nlohmann::json warm = sum(out_, parts_);
  EXPECT_EQ(warm["hits"]["l2"], 1);
  // 4 MB at 1.4 TB/s are 3 us; from L2 they take less than half of that.
  EXPECT_GT(seconds(cold), seconds(warm) + 1.5e-6);
  EXPECT_EQ(sum(out_, parts_), cold) << "the launch before stored only sums";
}

TEST_F(LeftInL2, TheSameLaunchesTakeTheSameTimes) {
  const auto sequence = [&](CUdeviceptr parts, CUdeviceptr out) {
    return nlohmann::json{store(parts), sum(out, parts), sum(out, parts), store(parts)};
  };
  const nlohmann::json told = sequence(parts_, out_);
  EXPECT_EQ(sequence(parts_, out_), told);
  const CUdeviceptr elsewhere = allocate(12'345), out = allocate(part);
  EXPECT_NE(elsewhere, out);
  EXPECT_EQ(sequence(others_, out), told) << "wherever the operands lie";
  EXPECT_EQ(time_only_(0), 1);
  EXPECT_EQ(sequence(parts_, out_), told) << "and if they are run";
}

TEST_F(LeftInL2, IsPushedOutByFillsAndCopies) {
  store(parts_);
  const nlohmann::json warm = sum(out_, parts_);
  store(parts_);
  EXPECT_EQ(cuda.function<CUresult(CUdeviceptr, unsigned, size_t)>("cuMemsetD32_v2")(others_, 0, 1), CUDA_SUCCESS);
  const nlohmann::json cold = sum(out_, parts_);
  EXPECT_GT(seconds(cold), seconds(warm));
  store(parts_);
  put(others_, {0});
  EXPECT_EQ(sum(out_, parts_), cold);
}

TEST_F(LeftInL2, IsNothingIfMoreThanHalfOfL2WasStored) {
  const CUdeviceptr large = allocate(32 * part);
  store(large, 20);
  EXPECT_EQ(sum(out_, large)["hits"]["l2"], 1);
  store(large, 21);
  EXPECT_EQ(sum(out_, large)["hits"]["l2"], 0);
}

TEST_F(LeftInL2, IsAPartOfALargerAllocation) {
  const CUdeviceptr pool = allocate(64 * part);
  store(pool + 8 * part);
  EXPECT_EQ(sum(out_, pool + 8 * part)["hits"]["l2"], 1);
  store(pool + 8 * part);
  EXPECT_EQ(sum(out_, pool + 12 * part)["hits"]["l2"], 0);
  store(pool + 8 * part);
  EXPECT_EQ(sum(out_, pool + 4 * part)["hits"]["l2"], 0) << "what lies before it";
  store(pool + 8 * part, 2);
  EXPECT_NEAR(sum(out_, pool + 8 * part)["hits"]["l2"].get<double>(), 0.5, 0.05) << "two of four parts";
}

TEST_F(LeftInL2, LeavesLaunchesInPlaceAsTheyAre) {
  const nlohmann::json first = run("step", {&parts_}, blocks, threads);
  EXPECT_EQ(run("step", {&parts_}, blocks, threads), first);
  store(parts_);
  EXPECT_EQ(run("step", {&parts_}, blocks, threads), first) << "what it stores itself";
}

TEST_F(LeftInL2, IsOfItsStream) {
  store(parts_);
  const nlohmann::json warm = sum(out_, parts_);
  const CUstream one = stream(CU_STREAM_NON_BLOCKING), other = stream(CU_STREAM_NON_BLOCKING);
  store(parts_, 4, one);
  EXPECT_GT(seconds(sum(out_, parts_, other)), seconds(warm));
  EXPECT_EQ(sum(out_, parts_, one), warm);
}

TEST_F(LeftInL2, PassesThroughGraphs) {
  store(parts_);
  const nlohmann::json warm = sum(out_, parts_);
  const CUstream on = stream(CU_STREAM_NON_BLOCKING);
  const auto captured = [&](const char* kernel, std::vector<void*> parameters, unsigned count) {
    EXPECT_EQ(
        cuda.cuLaunchKernel(function(module_, kernel), count, 1, 1, threads, 1, 1, 0, on, parameters.data(), nullptr),
        CUDA_SUCCESS);
  };
  float value = 1;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  EXPECT_EQ(cuda.cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  captured("sum", {&out_, &parts_}, blocks);
  captured("store", {&others_, &value}, 4 * blocks);
  captured("sum", {&out_, &others_}, blocks);
  captured("store", {&parts_, &value}, 4 * blocks);
  ASSERT_EQ(cuda.cuStreamEndCapture(on, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  const auto launches = [&] {
    cuda.function<const char*()>("kiln_emulator_launches_json")();  // of what came before
    EXPECT_EQ(cuda.cuGraphLaunch(executable, on), CUDA_SUCCESS);
    return nlohmann::json::parse(cuda.function<const char*()>("kiln_emulator_launches_json")());
  };
  const nlohmann::json first = launches(), second = launches();
  ASSERT_EQ(second.size(), 4U);
  EXPECT_GT(seconds(first[0]["modelled_time"]), seconds(warm));
  EXPECT_EQ(first[2]["modelled_time"], warm);
  EXPECT_EQ(second[0]["modelled_time"], warm) << "left by the graph's launch before";
  EXPECT_EQ(sum(out_, parts_, on), warm);
}

}  // namespace
}  // namespace kiln::emulator::testing
