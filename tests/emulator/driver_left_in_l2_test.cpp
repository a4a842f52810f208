// Data that a launch leaves in L2 for the next one of its stream, by the clock that reads machine code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clock_fixture.h"

namespace kiln::emulator::testing::driver_left_in_l2_test {
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

// Data decide where these store: what lies in memory, or the order in which threads come; and whether it is stored.
const std::string kernels_by_data = kernels + R"(
extern "C" __global__ void scatter(float* out, const int* places) {
  out[places[blockIdx.x * blockDim.x + threadIdx.x]] = 1;
}
extern "C" __global__ void take(float* out, int* taken) {
  out[atomicAdd(taken, 1)] = 1;
}
extern "C" __global__ void finish(float* out, int* done) {
  if (atomicAdd(done, 1) == gridDim.x * blockDim.x - 1) out[0] = 1;
}
)";

constexpr unsigned blocks = 1024, threads = 256;
constexpr size_t part = size_t{blocks} * threads * 4;  // bytes: 1 MB, of an L2 of 40 MB

// Copies to shared memory that bypass L1, beside loads that do not: each element by one of both.
const std::string kernels_with_copies = kernels + R"(
extern "C" __global__ void copy(float* out, const float4* parts, int by_l1) {
  __shared__ float4 tile[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;\n"
      "cp.async.commit_group;\n"
      "cp.async.wait_group 0;" ::"r"((int)__cvta_generic_to_shared(tile + threadIdx.x)), "l"(parts + i) : "memory");
  float x = tile[threadIdx.x].x;
  if (by_l1) x += parts[i].y;
  out[i] = x;
}
)";

// Each block stores a tile of 4 KB, `apart` tiles behind that of the block before.
const std::string kernels_in_bulk = kernels + R"(
extern "C" __global__ void store_in_bulk(float* parts, int apart) {
  __shared__ alignas(128) float tile[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] = i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;\n"
      "cp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;" ::"l"(parts + blockIdx.x * apart * 1024), "r"((int)__cvta_generic_to_shared(tile)) : "memory");
}
)";

class LeftInL2 : public ClockTest {
 protected:
  explicit LeftInL2(const std::string& source = kernels, const Variables& environment = machine_clock,
                    const std::string& arch = "sm_80")
      : ClockTest(source, environment, arch) {
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

  void begin_capture(CUstream on) {
    EXPECT_EQ(cuda.cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  }
  CUgraphExec end_capture(CUstream on) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    EXPECT_EQ(cuda.cuStreamEndCapture(on, &graph), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    return executable;
  }
  void capture(CUstream on, const char* kernel, std::vector<void*> parameters, unsigned count) {
    EXPECT_EQ(
        cuda.cuLaunchKernel(function(module_, kernel), count, 1, 1, threads, 1, 1, 0, on, parameters.data(), nullptr),
        CUDA_SUCCESS);
  }
  void capture_store(CUstream on, CUdeviceptr parts) {
    float value = 1;
    capture(on, "store", {&parts, &value}, 4 * blocks);
  }
  void capture_sum(CUstream on, CUdeviceptr out, CUdeviceptr parts) { capture(on, "sum", {&out, &parts}, blocks); }
  /// Puts the next work on `later` behind the last work on `earlier`.
  void order(CUstream earlier, CUstream later) {
    const CUevent reached = event();
    EXPECT_EQ(cuda.cuEventRecord(reached, earlier), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuStreamWaitEvent(later, reached, 0), CUDA_SUCCESS);
  }
  /// Times of each kernel of the graph.
  std::vector<nlohmann::json> launch(CUgraphExec executable, CUstream on) {
    cuda.function<const char*()>("kiln_emulator_launches_json")();  // of what came before
    EXPECT_EQ(cuda.cuGraphLaunch(executable, on), CUDA_SUCCESS);
    std::vector<nlohmann::json> told;
    for (const auto& each : nlohmann::json::parse(cuda.function<const char*()>("kiln_emulator_launches_json")())) {
      told.push_back(each["modelled_time"]);
    }
    return told;
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
  begin_capture(on);
  capture_sum(on, out_, parts_);
  capture_store(on, others_);
  capture_sum(on, out_, others_);
  capture_store(on, parts_);
  const CUgraphExec executable = end_capture(on);
  const std::vector<nlohmann::json> first = launch(executable, on), second = launch(executable, on);
  ASSERT_EQ(second.size(), 4U);
  EXPECT_GT(seconds(first[0]), seconds(warm));
  EXPECT_EQ(first[2], warm);
  EXPECT_EQ(second[0], warm) << "left by the graph's launch before";
  EXPECT_EQ(sum(out_, parts_, on), warm);
}

TEST_F(LeftInL2, StaysOverAnEmptyGraph) {
  const CUstream on = stream(CU_STREAM_NON_BLOCKING);
  begin_capture(on);
  const CUgraphExec nothing = end_capture(on);
  store(parts_, 4, on);
  const nlohmann::json warm = sum(out_, parts_, on);
  EXPECT_EQ(warm["hits"]["l2"], 1);
  store(parts_, 4, on);
  EXPECT_TRUE(launch(nothing, on).empty());
  EXPECT_EQ(sum(out_, parts_, on), warm);
}

// Both branches follow the same node; on the device, neither's launches come before the other's.
TEST_F(LeftInL2, IsForEachBranchOfAGraph) {
  const CUstream on = stream(CU_STREAM_NON_BLOCKING), other = stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr other_out = allocate(part);
  begin_capture(on);
  capture_store(on, parts_);
  order(on, other);
  capture_sum(on, out_, parts_);
  capture_sum(other, other_out, parts_);
  order(other, on);
  const std::vector<nlohmann::json> told = launch(end_capture(on), on);
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[1]["hits"]["l2"], 1);
  EXPECT_EQ(told[2]["hits"]["l2"], 1);
}

// The last of two branches is the one whose last node was recorded last, whichever stream goes on.
TEST_F(LeftInL2, IsOfTheBranchRecordedLastWhereTwoJoin) {
  store(parts_);
  const nlohmann::json warm = sum(out_, parts_), cold = sum(out_, parts_);
  const CUstream on = stream(CU_STREAM_NON_BLOCKING), other = stream(CU_STREAM_NON_BLOCKING);
  const auto after_join = [&](CUstream first, CUstream last, CUdeviceptr summed) {
    begin_capture(on);
    capture_store(on, out_);
    order(on, other);
    capture_store(first, parts_);
    capture_store(last, others_);
    order(other, on);
    capture_sum(on, out_, summed);
    const std::vector<nlohmann::json> told = launch(end_capture(on), on);
    EXPECT_EQ(told.size(), 4U);
    return told.back();
  };
  for (const bool goes_on : {true, false}) {
    const CUstream last = goes_on ? on : other, first = goes_on ? other : on;
    EXPECT_EQ(after_join(first, last, others_), warm) << goes_on;
    EXPECT_EQ(after_join(first, last, parts_), cold) << goes_on;
  }
}

// The emulator keeps the addresses of the last 512 allocations that were freed.
TEST_F(LeftInL2, IsOfTheAllocationThatHadTheAddresses) {
  const auto stored = [&](CUdeviceptr parts) {
    float value = 1;
    run("store", {&parts, &value}, blocks, threads);
  };
  const auto found = [&](CUdeviceptr parts) {
    return run("sum", {&out_, &parts}, blocks / 4, threads)["hits"]["l2"].get<double>();
  };
  const CUdeviceptr old = allocate(part);
  std::vector<CUdeviceptr> small(512);
  for (CUdeviceptr& each : small) each = allocate(4);
  stored(old);
  EXPECT_EQ(found(old), 1);
  stored(old);
  EXPECT_EQ(cuda.cuMemFree_v2(old), CUDA_SUCCESS);
  for (const CUdeviceptr each : small) EXPECT_EQ(cuda.cuMemFree_v2(each), CUDA_SUCCESS);
  CUdeviceptr there = 0;
  for (int tries = 0; tries < 100 && there != old; ++tries) there = allocate(part);
  if (there != old) GTEST_SKIP() << "the system gave these addresses to nobody";
  EXPECT_EQ(found(there), 0);
  stored(there);
  EXPECT_EQ(found(there), 1);
}

class LeftInL2ByData : public LeftInL2 {
 protected:
  LeftInL2ByData() : LeftInL2(kernels_by_data) { time_only_(0); }

  /// Hits in L2 of the sum of parts that were stored before another kernel, which tells `clock`.
  double found_after(const char* kernel, CUdeviceptr out, CUdeviceptr data, const std::string& clock) {
    store(parts_);
    EXPECT_THAT(run(kernel, {&out, &data}, blocks, threads)["clock"].get<std::string>(), ::testing::StartsWith(clock));
    return sum(out_, parts_)["hits"]["l2"].get<double>();
  }
};

TEST_F(LeftInL2ByData, IsWhatDataInMemorySayIsStored) {
  std::vector<uint32_t> places(size_t{blocks} * threads);
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint32_t>(places.size() - 1 - i);
  const CUdeviceptr there = allocate(part);
  put(there, places);
  EXPECT_NEAR(found_after("scatter", parts_, there, "machine code"), 0.25, 0.03) << "a part of four";
  EXPECT_EQ(found_after("scatter", others_, there, "machine code"), 0);
}

TEST_F(LeftInL2ByData, IsNothingWhereItIsNotKnown) {
  const CUdeviceptr count = allocate(4);
  put(count, {0});
  EXPECT_EQ(found_after("take", others_, count, "machine code"), 0);
  put(count, {0});
  EXPECT_EQ(found_after("take", parts_, count, "machine code"), 0);
  put(count, {0});
  EXPECT_EQ(found_after("finish", parts_, count, "ptx"), 0) << "of which machine code tells no time";
}

class LeftInL2InBulk : public LeftInL2 {
 protected:
  LeftInL2InBulk()
      : LeftInL2(kernels_in_bulk, {{"KILN_EMULATOR_CLOCK", "machine"}, {"KILN_EMULATOR_DEVICE", "h200"}}, "sm_90") {}
};

TEST_F(LeftInL2InBulk, IsWhatWasCopied) {
  const auto found_after = [&](CUdeviceptr copied, unsigned parts, int apart = 1) {
    const auto tiles = static_cast<unsigned>(parts * part / 4096);
    EXPECT_THAT(run("store_in_bulk", {&copied, &apart}, tiles, threads)["clock"].get<std::string>(),
                ::testing::StartsWith("machine code"));
    return sum(out_, parts_)["hits"]["l2"].get<double>();
  };
  EXPECT_EQ(found_after(parts_, 4), 1);
  EXPECT_NEAR(found_after(parts_, 1), 0.25, 0.03);
  EXPECT_NEAR(found_after(parts_ + part, 2), 0.5, 0.03);
  EXPECT_NEAR(found_after(parts_, 1, 2), 0.5, 0.03) << "and what lies between";
  EXPECT_EQ(found_after(others_, 4), 0);
}

class HitsOfCopies : public LeftInL2 {
 protected:
  HitsOfCopies() : LeftInL2(kernels_with_copies) {}

  nlohmann::json hits(int by_l1) { return run("copy", {&out_, &parts_, &by_l1}, blocks, threads)["hits"]; }
};

TEST_F(HitsOfCopies, CountNoneInL1WhereTheyBypassIt) {
  EXPECT_FALSE(hits(0).contains("l1"));
  EXPECT_EQ(hits(0)["l2"], 0);
  const nlohmann::json both = hits(1);
  EXPECT_GE(both["l1"], 0);
  EXPECT_LE(both["l1"], 1);
  EXPECT_EQ(both["l2"], 0.5) << "the copies brought to L2 what the loads ask for";
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_left_in_l2_test
