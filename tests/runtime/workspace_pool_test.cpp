#include "workspace_pool.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fake_driver.h"
#include "kiln/base/error.h"

namespace kiln::workspace_pool_test {
namespace {

using namespace cuda_abi;
using testing::ElementsAre;
using testing::SizeIs;

// A device as far as workspaces are concerned.
struct Device {
  std::set<uint64_t> busy;         // events whose work is not over
  std::vector<std::string> steps;  // "wait STREAM EVENT", "record STREAM EVENT"
  std::vector<size_t> allocations;
  uint64_t events = 0;
  bool work_never_ends = false;
  bool capturing = false;
};

Device* device = nullptr;

uint64_t number(const void* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

Stream stream(uint64_t handle) {
  return reinterpret_cast<Stream>(handle);
}

class WorkspacePoolTest : public testing::Test {
 protected:
  WorkspacePoolTest() {
    device = &device_;
    DriverTable& table = fake_.table;
    table.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t bytes) {
      device->allocations.push_back(bytes);
      *address = 4096 * device->allocations.size();
      return CUDA_SUCCESS;
    };
    table.cuEventCreate = [](CUevent* event, unsigned) {
      *event = reinterpret_cast<CUevent>(++device->events);
      return CUDA_SUCCESS;
    };
    table.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
    table.cuEventRecord = [](CUevent event, CUstream on) {
      device->steps.push_back(fmt::format("record {} {}", number(on), number(event)));
      if (device->work_never_ends) device->busy.insert(number(event));
      return CUDA_SUCCESS;
    };
    table.cuEventQuery = [](CUevent event) {
      return device->busy.contains(number(event)) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    table.cuStreamWaitEvent = [](CUstream on, CUevent event, unsigned) {
      device->steps.push_back(fmt::format("wait {} {}", number(on), number(event)));
      return CUDA_SUCCESS;
    };
    table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
      *status = device->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
      return CUDA_SUCCESS;
    };
    pool_.emplace(fake_.context());
  }
  ~WorkspacePoolTest() override {
    pool_.reset();
    device = nullptr;
  }

  void* lend(uint64_t handle, int64_t bytes) { return pool_->lease(stream(handle), bytes).address(); }

  using DriverTable = device::DriverTable;
  Device device_;
  device::FakeDriver fake_;
  std::optional<WorkspacePool> pool_;
};

TEST_F(WorkspacePoolTest, EveryLeaseWaitsForTheWorkOfTheOneBefore) {
  lend(7, 100);
  lend(7, 100);
  EXPECT_THAT(device_.steps, ElementsAre("wait 7 1", "record 7 1", "wait 7 1", "record 7 1"))
      << "the handle may mean a new stream by now";
}

TEST_F(WorkspacePoolTest, ThePerThreadStreamIsAnotherInEachThread) {
  constexpr uint64_t per_thread = 2;  // CU_STREAM_PER_THREAD
  device_.work_never_ends = true;
  void* const here = lend(per_thread, 100);
  void* there = nullptr;
  std::thread([&] { there = lend(per_thread, 100); }).join();
  EXPECT_NE(there, here) << "the two need not wait for each other";
  EXPECT_EQ(lend(per_thread, 100), here);
}

TEST_F(WorkspacePoolTest, StreamsThatAreBusyAtTheSameTimeHaveOneEach) {
  device_.work_never_ends = true;
  void* const first = lend(7, 100);
  void* const second = lend(8, 100);
  EXPECT_NE(first, second);
  EXPECT_EQ(lend(7, 100), first);
  EXPECT_EQ(lend(8, 100), second);
}

TEST_F(WorkspacePoolTest, TheDefaultStreamHasTwoNames) {
  device_.work_never_ends = true;
  EXPECT_EQ(lend(0, 100), lend(1, 100));
  EXPECT_NE(lend(0, 100), lend(2, 100));
}

TEST_F(WorkspacePoolTest, WhatIsIdlePassesToTheNextStream) {
  for (uint64_t handle = 10; handle < 60; ++handle) lend(handle, 100);
  EXPECT_THAT(device_.allocations, SizeIs(1));
}

TEST_F(WorkspacePoolTest, WhatIsLentIsNotIdle) {
  const WorkspacePool::Lease lease = pool_->lease(stream(7), 100);
  EXPECT_NE(lend(8, 100), lease.address());
}

TEST_F(WorkspacePoolTest, AStreamBeyondTheMostWaitsForTheLeastRecentlyUsed) {
  device_.work_never_ends = true;
  for (uint64_t handle = 10; handle < 10 + WorkspacePool::max_workspaces; ++handle) lend(handle, 100);
  lend(10, 100);  // so that the second is the oldest
  device_.steps.clear();
  lend(99, 100);
  EXPECT_THAT(device_.allocations, SizeIs(WorkspacePool::max_workspaces));
  EXPECT_THAT(device_.steps, ElementsAre("wait 99 2", "record 99 2"));
}

TEST_F(WorkspacePoolTest, GrowsByDoublingAndKeepsWhatWorkMayStillUse) {
  void* const small = lend(7, 100);
  void* const large = lend(7, 101);
  EXPECT_NE(small, large);
  EXPECT_EQ(lend(7, 150), large);
  EXPECT_THAT(device_.allocations, ElementsAre(100, 200));
  EXPECT_THAT(fake_.calls, testing::Not(testing::Contains(testing::StartsWith("free"))));
}

TEST_F(WorkspacePoolTest, PrefersAnIdleOneThatIsLargeEnough) {
  device_.work_never_ends = true;
  lend(7, 100);
  void* const large = lend(8, 1000);
  device_.busy.clear();
  EXPECT_EQ(lend(9, 1000), large);
}

TEST_F(WorkspacePoolTest, AFailedAllocationGivesTheWorkspaceBack) {
  fake_.table.cuMemAlloc_v2 = [](CUdeviceptr*, size_t) { return CUDA_ERROR_OUT_OF_MEMORY; };
  pool_.emplace(fake_.context());
  for (uint64_t handle = 10; handle < 60; ++handle) EXPECT_THROW(lend(handle, 100), Error);
  EXPECT_EQ(device_.events, 1U);
}

TEST_F(WorkspacePoolTest, IsNotLentToAGraph) {
  device_.capturing = true;
  try {
    lend(7, 100);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("captured into a graph"));
  }
  EXPECT_TRUE(device_.steps.empty());
}

}  // namespace
}  // namespace kiln::workspace_pool_test
