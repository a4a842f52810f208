// Stream capture and graphs through the driver API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_graph_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class DriverGraph : public DriverTest {
 protected:
  void begin(CUstream on, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    EXPECT_EQ(cuda.cuStreamBeginCapture_v2(on, mode), CUDA_SUCCESS);
  }
  CUgraph end(CUstream on) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuda.cuStreamEndCapture(on, &graph), CUDA_SUCCESS);
    return graph;
  }
  CUresult end_result(CUstream on) {
    auto graph = reinterpret_cast<CUgraph>(1);
    const CUresult result = cuda.cuStreamEndCapture(on, &graph);
    EXPECT_EQ(graph == nullptr, result != CUDA_SUCCESS);
    return result;
  }
  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    return executable;
  }
  std::vector<CUgraphNode> nodes(CUgraph graph) {
    size_t count = 0;
    EXPECT_EQ(cuda.cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    std::vector<CUgraphNode> result(count);
    EXPECT_EQ(cuda.cuGraphGetNodes(graph, result.data(), &count), CUDA_SUCCESS);
    return result;
  }
  CUstreamCaptureStatus status(CUstream of) {
    CUstreamCaptureStatus result = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cuda.cuStreamIsCapturing(of, &result), CUDA_SUCCESS);
    return result;
  }
  CUresult fill_some(uint32_t value, CUstream on, unsigned blocks = 0) {
    return fill(fill_, out_, value, 4, on, blocks);
  }

  CUfunction fill_ = function(load(fill_ptx), "fill");
  CUdeviceptr out_ = allocate(4096);
  CUstream stream_ = stream(CU_STREAM_NON_BLOCKING);
};

TEST_F(DriverGraph, CaptureRecordsWorkAndALaunchExecutesIt) {
  begin(stream_);
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(fill_some(7, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemsetD32Async(out_ + 4, 9, 2, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(out_ + 64, out_, 16, stream_), CUDA_SUCCESS);
  const CUgraph graph = end(stream_);
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_THAT(read(out_, 32), Each(0u)) << "recorded, not executed";

  const CUgraphExec executable = instantiate(graph);
  EXPECT_EQ(cuda.cuGraphDestroy(graph), CUDA_SUCCESS) << "an executable graph stands by itself";
  for (int launch = 0; launch < 2; ++launch) {
    EXPECT_EQ(cuda.cuMemsetD32Async(out_, 0, 32, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_THAT(read(out_, 5), ElementsAre(7u, 9u, 9u, 7u, 0u));
    EXPECT_THAT(read(out_ + 64, 4), ElementsAre(7u, 9u, 9u, 7u));
  }
  EXPECT_EQ(cuda.cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(executable, stream_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda.cuGraphDestroy(graph), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverGraph, NodesTellWhatTheyAreAndWhatTheyWouldLaunch) {
  begin(stream_);
  EXPECT_EQ(fill_some(7, stream_, 3), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemsetD8Async(out_, 1, 4, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(out_ + 64, out_, 16, stream_), CUDA_SUCCESS);
  const CUgraph graph = end(stream_);
  std::vector<CUgraphNodeType> types;
  for (const CUgraphNode node : nodes(graph)) {
    EXPECT_EQ(cuda.cuGraphNodeGetType(node, &types.emplace_back()), CUDA_SUCCESS);
  }
  EXPECT_THAT(types, ElementsAre(CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMCPY));
  CUDA_KERNEL_NODE_PARAMS parameters = {};
  const CUgraphNode kernel = nodes(graph)[0];
  ASSERT_EQ(cuda.cuGraphKernelNodeGetParams(kernel, &parameters), CUDA_SUCCESS);
  EXPECT_EQ(parameters.func, fill_);
  EXPECT_EQ(parameters.gridDimX, 3u);
  EXPECT_EQ(parameters.blockDimX, 128u);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(parameters.kernelParams[0]), out_);
  EXPECT_EQ(*static_cast<uint32_t*>(parameters.kernelParams[1]), 7u);
  EXPECT_EQ(cuda.cuGraphKernelNodeGetParams(nodes(graph)[1], &parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphKernelNodeGetParams(kernel, &parameters), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverGraph, KernelParametersChangeBetweenLaunches) {
  begin(stream_);
  EXPECT_EQ(fill_some(1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemsetD8Async(out_ + 64, 1, 4, stream_), CUDA_SUCCESS);
  const CUgraph graph = end(stream_);
  const CUgraphExec executable = instantiate(graph), other = instantiate(graph);
  CUDA_KERNEL_NODE_PARAMS parameters = {};
  ASSERT_EQ(cuda.cuGraphKernelNodeGetParams(nodes(graph)[0], &parameters), CUDA_SUCCESS);
  CUdeviceptr elsewhere = out_ + 1024;
  uint32_t value = 5, count = 2;
  void* values[] = {&elsewhere, &value, &count};
  parameters.kernelParams = values;
  EXPECT_EQ(cuda.cuGraphExecKernelNodeSetParams(executable, nodes(graph)[0], &parameters), CUDA_SUCCESS);
  value = 6;
  EXPECT_EQ(cuda.cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_THAT(read(out_, 4), Each(0u));
  EXPECT_THAT(read(elsewhere, 3), ElementsAre(5u, 5u, 0u)) << "the values at the time of the update";
  EXPECT_EQ(cuda.cuGraphLaunch(other, stream_), CUDA_SUCCESS);
  EXPECT_THAT(read(out_, 4), Each(1u)) << "another instance keeps its own";

  parameters.blockDimX = 2000;
  EXPECT_EQ(cuda.cuGraphExecKernelNodeSetParams(executable, nodes(graph)[0], &parameters), CUDA_ERROR_INVALID_VALUE);
  parameters.blockDimX = 128;
  CUcontext current = nullptr;
  ASSERT_EQ(cuda.cuCtxPopCurrent_v2(&current), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphExecKernelNodeSetParams(executable, nodes(graph)[0], &parameters), CUDA_ERROR_INVALID_CONTEXT)
      << "these parameters name no context, and a GPU's driver ends the process where none is current";
  ASSERT_EQ(cuda.cuCtxPushCurrent_v2(current), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphExecKernelNodeSetParams(executable, nodes(graph)[1], &parameters), CUDA_ERROR_INVALID_VALUE)
      << "not a kernel";
  begin(stream_);
  EXPECT_EQ(fill_some(1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphExecKernelNodeSetParams(executable, nodes(end(stream_))[0], &parameters),
            CUDA_ERROR_INVALID_VALUE)
      << "a node of another graph";
}

TEST_F(DriverGraph, ForkedStreamsJoinTheCaptureAndOverlapInModelledTime) {
  const CUstream side = stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = event(), join = event(), start = event(), once = event(), stop = event();
  begin(stream_);
  EXPECT_EQ(fill_some(1, stream_, 8), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(fork, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
  EXPECT_EQ(status(side), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(fill(fill_, out_ + 64, 2, 4, side, 8), CUDA_SUCCESS);
  EXPECT_EQ(fill_some(3, stream_, 8), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(join, side), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamWaitEvent(stream_, join, 0), CUDA_SUCCESS);
  const CUgraphExec executable = instantiate(end(stream_));
  EXPECT_EQ(status(side), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuda.cuEventRecord(start, stream_), CUDA_SUCCESS);
  EXPECT_EQ(fill_some(9, stream_, 8), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(once, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(stop, stream_), CUDA_SUCCESS);
  EXPECT_THAT(read(out_, 4), Each(3u));
  EXPECT_THAT(read(out_ + 64, 4), Each(2u));
  EXPECT_FLOAT_EQ(elapsed(once, stop), 2 * elapsed(start, once)) << "the fork runs beside the second kernel";
}

TEST_F(DriverGraph, ForkedWorkThatDoesNotJoinIsAnError) {
  const CUstream side = stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = event();
  begin(stream_);
  EXPECT_EQ(cuda.cuEventRecord(fork, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
  EXPECT_EQ(fill_some(1, side), CUDA_SUCCESS);
  EXPECT_EQ(end_result(side), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) << "it began elsewhere";
  EXPECT_EQ(end_result(stream_), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(status(side), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuda.cuEventSynchronize(fork), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(cuda.cuEventRecord(fork, side), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventSynchronize(fork), CUDA_SUCCESS) << "recorded anew";
}

TEST_F(DriverGraph, AllocatingOrWaitingInsideACaptureSpoilsIt) {
  CUdeviceptr address = 0;
  const CUevent recorded = event();
  EXPECT_EQ(cuda.cuEventRecord(recorded, nullptr), CUDA_SUCCESS);
  const std::vector<std::function<CUresult()>> forbidden = {
      [&] { return cuda.cuEventQuery(recorded); },       [&] { return cuda.cuEventSynchronize(recorded); },
      [&] { return cuda.cuMemAlloc_v2(&address, 4); },   [&] { return cuda.cuMemFree_v2(out_); },
      [&] { return cuda.cuStreamSynchronize(stream_); }, [&] { return cuda.cuStreamQuery(stream_); },
      [&] { return cuda.cuCtxSynchronize(); },           [&] { return cuda.cuMemcpyDtoH_v2(&address, out_, 4); },
  };
  for (size_t k = 0; k < forbidden.size(); ++k) {
    begin(stream_);
    EXPECT_EQ(forbidden[k](), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << k;
    EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_INVALIDATED) << k;
    EXPECT_EQ(fill_some(1, stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << k;
    EXPECT_EQ(end_result(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << k;
  }
  EXPECT_EQ(fill_some(1, stream_), CUDA_SUCCESS);
  EXPECT_THAT(read(out_, 4), Each(1u));
}

TEST_F(DriverGraph, ModesSayWhichThreadsMayAllocateMeanwhile) {
  CUresult here = CUDA_SUCCESS, there = CUDA_SUCCESS;
  const auto allocate_in_both = [&](CUstreamCaptureMode mode) {
    CUdeviceptr address = 0;
    begin(stream_, mode);
    std::thread([&] {
      EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
      there = cuda.cuMemAlloc_v2(&address, 4);
    }).join();
    here = cuda.cuMemAlloc_v2(&address, 4);
    end_result(stream_);
  };
  allocate_in_both(CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(here, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(there, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  allocate_in_both(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(here, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(there, CUDA_SUCCESS);
  allocate_in_both(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(here, CUDA_SUCCESS);
  EXPECT_EQ(there, CUDA_SUCCESS);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(cuda.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  allocate_in_both(CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(here, CUDA_SUCCESS) << "this thread has said that it knows what it does";
  EXPECT_EQ(cuda.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
}

TEST_F(DriverGraph, StreamsKeepTheRulesOfCapture) {
  const CUstream blocking = stream(), side = stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuda.cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end_result(stream_), CUDA_ERROR_ILLEGAL_STATE);
  begin(blocking);
  EXPECT_EQ(cuda.cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  CUstreamCaptureStatus ignored = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(cuda.cuStreamIsCapturing(nullptr, &ignored), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(status(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE) << "asking spoils nothing";
  EXPECT_EQ(fill_some(1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) << "the default stream waits for blocking ones";
  EXPECT_EQ(end_result(blocking), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(stream_);
  EXPECT_EQ(status(nullptr), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(fill_some(1, nullptr), CUDA_SUCCESS) << "but not for others";
  std::thread([&] { EXPECT_EQ(end_result(stream_), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); }).join();
  const CUevent outside = event(), inside = event();
  EXPECT_EQ(cuda.cuEventRecord(outside, side), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamWaitEvent(stream_, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(end_result(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(stream_);
  begin(side);
  EXPECT_EQ(cuda.cuEventRecord(inside, side), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamWaitEvent(stream_, inside, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(end_result(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(end_result(side), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuda.cuStreamWaitEvent(side, inside, 0), CUDA_ERROR_CAPTURED_EVENT) << "its capture is over";
}

TEST_F(DriverGraph, AFaultInsideIsReportedLikeAnyOther) {
  begin(stream_);
  EXPECT_EQ(fill(fill_, out_, 1, 2000, stream_), CUDA_SUCCESS);
  EXPECT_EQ(fill_some(1, stream_), CUDA_SUCCESS);
  const CUgraphExec executable = instantiate(end(stream_));
  CaptureStderr();
  EXPECT_EQ(cuda.cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  EXPECT_THAT(GetCapturedStderr(), ::testing::HasSubstr("past the end of allocation 1"));
  EXPECT_EQ(cuda.cuStreamSynchronize(stream_), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(DriverGraph, ThreadsLaunchOneExecutableEach) {
  begin(stream_);
  EXPECT_EQ(fill(fill_, out_, 3, 1000, stream_), CUDA_SUCCESS);
  const CUgraph graph = end(stream_);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
      const CUgraphExec executable = instantiate(graph);
      const CUstream own = stream(CU_STREAM_NON_BLOCKING);
      for (int launch = 0; launch < 10; ++launch) EXPECT_EQ(cuda.cuGraphLaunch(executable, own), CUDA_SUCCESS);
      EXPECT_EQ(cuda.cuStreamSynchronize(own), CUDA_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(read(out_, 1000), Each(3u));
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_graph_test
