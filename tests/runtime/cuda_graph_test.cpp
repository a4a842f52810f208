// CUDA graphs: plans are captured, replayed, and given other pointers.
//
// The captures are of mode `global`, in which the driver refuses whatever could wait or allocate, so a capture that
// succeeds shows that Plan::run does neither.
#include "kiln/cuda_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/context.h"
#include "kiln/conv.h"
#include "kiln/device/stream.h"
#include "kiln/memory.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/softmax.h"

namespace kiln::cuda_graph_test {
namespace {

using namespace cuda_abi;

// The operands of a request on the device, and what was put into them.
struct Operands {
  std::vector<std::vector<std::byte>> host;
  std::vector<Address> device;
  size_t y = 0;
};

class CudaGraphTest : public DeviceTest {
 protected:
  ~CudaGraphTest() override {
    for (const CUgraphExec executable : executables_) EXPECT_EQ(calls().cuGraphExecDestroy(executable), CUDA_SUCCESS);
    for (const CUgraph graph : graphs_) EXPECT_EQ(calls().cuGraphDestroy(graph), CUDA_SUCCESS);
  }

  const device::DriverTable& calls() const { return device_->driver().calls(); }
  Stream stream() const { return stream_.raw(); }

  Operands make(const Request& request, uint64_t seed) {
    Operands operands;
    for (const Operand& operand : request.operands) {
      if (operand.name == "y") operands.y = operands.host.size();
      operands.host.push_back(operand.name == "y" ? reference::poisoned(operand.spec)
                                                  : reference::filled(operand.spec, reference::Values::uniform, seed));
      operands.device.emplace_back(upload(operands.host.back()));
    }
    return operands;
  }

  void refill(const Request& request, Operands& operands, uint64_t seed) {
    for (size_t i = 0; i < operands.host.size(); ++i) {
      if (i != operands.y)
        operands.host[i] = reference::filled(request.operands[i].spec, reference::Values::uniform, seed);
      device::copy_to_device(*device_, reinterpret_cast<CUdeviceptr>(operands.device[i].pointer),
                             operands.host[i].data(), operands.host[i].size());
    }
  }

  void* workspace_of(const Plan& plan) {
    return upload(std::vector<std::byte>(static_cast<size_t>(plan.workspace_bytes()), std::byte{0xff}));
  }

  bool is_right(const Request& request, const Operands& operands) {
    reference::Bindings bindings;
    for (size_t i = 0; i < operands.host.size(); ++i) bindings.operands[request.operands[i].name] = operands.host[i];
    const auto output = download(operands.device[operands.y].pointer, operands.host[operands.y].size());
    return !reference::compare(request, bindings, output);
  }

  // Work that `enqueue` puts into the stream, as a graph.
  template <class Enqueue>
  CUgraph capture(const Enqueue& enqueue) {
    EXPECT_EQ(
        device_->call(&device::DriverTable::cuStreamBeginCapture_v2, stream_.raw(), CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);
    enqueue();
    CUgraph graph = nullptr;
    EXPECT_EQ(device_->call(&device::DriverTable::cuStreamEndCapture, stream_.raw(), &graph), CUDA_SUCCESS);
    if (graph != nullptr) graphs_.push_back(graph);
    return graph;
  }

  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(device_->call(&device::DriverTable::cuGraphInstantiateWithFlags, &executable, graph, 0ULL), CUDA_SUCCESS);
    executables_.push_back(executable);
    return executable;
  }

  void replay(CUgraphExec executable) {
    EXPECT_EQ(device_->call(&device::DriverTable::cuGraphLaunch, executable, stream_.raw()), CUDA_SUCCESS);
    stream_.synchronize();
  }

  std::vector<CUgraphNode> kernels_of(CUgraph graph) const {
    size_t count = 0;
    EXPECT_EQ(calls().cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    std::vector<CUgraphNode> nodes(count);
    EXPECT_EQ(calls().cuGraphGetNodes(graph, nodes.data(), &count), CUDA_SUCCESS);
    std::erase_if(nodes, [&](CUgraphNode node) {
      CUgraphNodeType type = {};
      EXPECT_EQ(calls().cuGraphNodeGetType(node, &type), CUDA_SUCCESS);
      return type != CU_GRAPH_NODE_TYPE_KERNEL;
    });
    return nodes;
  }

 private:
  device::Stream stream_{device_};
  std::vector<CUgraph> graphs_;
  std::vector<CUgraphExec> executables_;
};

const std::vector<std::string> lines = {
    "conv_forward x=f32:1x3x9x7 w=f32:5x3x3x3 pad=1 epilogue=bias+relu",
    "conv_forward x=f32:1x512x7x7 w=f32:64x512x3x3 pad=1",  // several kernels and a workspace
    "pool_forward x=f16:2x3x9x9:nhwc mode=avg window=3 stride=2 pad=1",
    "softmax_forward x=f32:4x37",
    "softmax_forward x=f32:4x37 n=?",
};

TEST_F(CudaGraphTest, AReplayComputesWhatTheCallWould) {
  Context context(options());
  for (const std::string& line : lines) {
    const Request request = Request::parse(line);
    const Plan plan = context.plan(request);
    Operands operands = make(request, 1);
    void* workspace = workspace_of(plan);
    RunValues values;
    if (request.dynamic_batch) values.n = request.batch();
    const CUgraph graph = capture([&] { plan.run(stream(), operands.device, workspace, values); });
    ASSERT_NE(graph, nullptr) << line;
    EXPECT_FALSE(is_right(request, operands)) << line << ": a capture must not execute";
    const CUgraphExec executable = instantiate(graph);
    for (uint64_t seed : {2, 3}) {
      refill(request, operands, seed);
      replay(executable);
      EXPECT_TRUE(is_right(request, operands)) << line << ", inputs " << seed;
    }
  }
}

TEST_F(CudaGraphTest, AGraphIsGivenOtherPointersWithoutANewInstance) {
  Context context(options());
  for (const std::string& line : lines) {
    const Request request = Request::parse(line);
    const Plan plan = context.plan(request);
    Operands first = make(request, 1), second = make(request, 2);
    void* workspace = workspace_of(plan);
    RunValues values;
    if (request.dynamic_batch) values.n = request.batch();
    const CUgraph graph = capture([&] { plan.run(stream(), first.device, workspace, values); });
    const CUgraphExec executable = instantiate(graph);
    // The same run with other operands has the same kernels in the same order: their parameters go to the instance.
    const CUgraph other = capture([&] { plan.run(stream(), second.device, workspace, values); });
    const std::vector<CUgraphNode> from = kernels_of(other), to = kernels_of(graph);
    ASSERT_EQ(from.size(), to.size());
    ASSERT_FALSE(from.empty());
    for (size_t i = 0; i < from.size(); ++i) {
      CUDA_KERNEL_NODE_PARAMS parameters = {};
      ASSERT_EQ(calls().cuGraphKernelNodeGetParams(from[i], &parameters), CUDA_SUCCESS);
      ASSERT_EQ(device_->call(&device::DriverTable::cuGraphExecKernelNodeSetParams, executable, to[i], &parameters),
                CUDA_SUCCESS);
    }
    replay(executable);
    EXPECT_TRUE(is_right(request, second)) << line;
    EXPECT_FALSE(is_right(request, first)) << line << ": the first operands were written";
  }
}

// A layer, and one that reads its result.
class TwoLayers : public CudaGraphTest {
 protected:
  TwoLayers() { b_.device[0] = a_.device[a_.y]; }

  void enqueue(Stream stream) {
    first_.run(stream, a_.device, workspace_);
    second_.run(stream, b_.device);
  }

  Context context_{options()};
  const Request conv_ = Request::parse("conv_forward x=f32:2x3x6x6 w=f32:4x3x3x3 pad=1 epilogue=relu");
  const Request pool_ = Request::parse("pool_forward x=f32:2x4x6x6 mode=max window=2 stride=2");
  const Plan first_ = context_.plan(conv_), second_ = context_.plan(pool_);
  Operands a_ = make(conv_, 1), b_ = make(pool_, 1);
  void* workspace_ = workspace_of(first_);
};

TEST_F(TwoLayers, SeveralLayersMakeOneGraph) {
  const CUgraphExec executable = instantiate(capture([&] { enqueue(stream()); }));
  replay(executable);
  EXPECT_TRUE(is_right(conv_, a_));
  b_.host[0] = download(a_.device[a_.y].pointer, a_.host[a_.y].size());
  EXPECT_TRUE(is_right(pool_, b_));
}

TEST_F(TwoLayers, CallsBecomeAGraphWithoutTheDriversHelp) {
  CudaGraph graph(context_, [&](Stream captured) {
    EXPECT_TRUE(is_captured(context_, captured));
    enqueue(captured);
  });
  EXPECT_FALSE(is_captured(context_, stream()));
  EXPECT_FALSE(is_right(conv_, a_)) << "nothing runs yet";
  for (const Stream on : {stream(), Stream{nullptr}}) {
    refill(conv_, a_, on == nullptr ? 2 : 3);
    graph.launch(on);
    device_->synchronize();
    EXPECT_TRUE(is_right(conv_, a_));
    b_.host[0] = download(a_.device[a_.y].pointer, a_.host[a_.y].size());
    EXPECT_TRUE(is_right(pool_, b_));
  }
  const CudaGraph moved = std::move(graph);
  moved.launch(stream());
  EXPECT_THAT(
      refusal_of([&] { graph.launch(stream()); }, ErrorCode::invalid_argument),  // NOLINT(bugprone-use-after-move)
      testing::HasSubstr("was moved from"));
}

TEST_F(CudaGraphTest, WhatACaptureThrowsLeavesNothingBehind) {
  Context context(options());
  const Plan plan = context.plan(Request::parse("softmax_forward x=f32:4x37"));
  const auto attempt = [&] { const CudaGraph graph(context, [&](Stream captured) { plan.run(captured, {}); }); };
  EXPECT_THAT(refusal_of(attempt, ErrorCode::invalid_argument), testing::HasSubstr("0 operands were given"));
  Operands operands = make(plan.request(), 1);
  const CudaGraph graph(context, [&](Stream captured) { plan.run(captured, operands.device); });
  graph.launch(stream());
  device_->synchronize();
  EXPECT_TRUE(is_right(plan.request(), operands));
}

TEST_F(CudaGraphTest, OfAnEmptyFunctionIsRefused) {
  Context context(options());
  const auto attempt = [&] { const CudaGraph graph(context, {}); };
  EXPECT_THAT(refusal_of(attempt, ErrorCode::invalid_argument), testing::HasSubstr("the function to capture is empty"));
}

// Calls by tensor too, once their plan is there and if it needs no workspace: a look-up and no allocation.
TEST_F(CudaGraphTest, AnOperationCallThatWasMadeBeforeIsCaptured) {
  Context context(options());
  const Request request = Request::parse("softmax_forward x=f32:4x37");
  Operands operands = make(request, 1);
  const Tensor x(operands.device[0].pointer, f32, {4, 37}, nc), y(operands.device[1].pointer, f32, {4, 37}, nc);
  softmax_forward(context, x, y, {}, stream());
  refill(request, operands, 2);
  const CUgraph graph = capture([&] { softmax_forward(context, x, y, {}, stream()); });
  ASSERT_NE(graph, nullptr);
  EXPECT_FALSE(is_right(request, operands));
  replay(instantiate(graph));
  EXPECT_TRUE(is_right(request, operands));
}

// Surroundings of a capture that must stay whole: one kernel, enqueued at the end of it.
class FirstCalls : public CudaGraphTest {
 protected:
  FirstCalls() : plan_(context_.plan(request_)), operands_(make(request_, 1)) {}

  // Captures `attempt` and then the plan's run: the graph must be whole and hold nothing but that.
  void expect_intact(const std::function<void()>& attempt) {
    const CUgraph graph = capture([&] {
      attempt();
      plan_.run(stream(), operands_.device);
    });
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(kernels_of(graph).size(), 1U);
    replay(instantiate(graph));
    EXPECT_TRUE(is_right(request_, operands_));
  }

  std::string refused(const std::function<void()>& call) { return refusal_of(call, ErrorCode::unsupported); }

  Tensor of(int64_t rows, size_t operand) { return {operands_.device[operand].pointer, f32, {rows, 37}, nc}; }

  const Request request_ = Request::parse("softmax_forward x=f32:4x37");
  Context context_{options()};
  const Plan plan_;
  Operands operands_;
};

TEST_F(FirstCalls, InACaptureAreRefusedBeforeAnythingIsEnqueued) {
  expect_intact([&] {
    const std::string text = refused([&] { softmax_forward(context_, of(3, 0), of(3, 1), {}, stream()); });
    EXPECT_THAT(text, testing::HasSubstr("softmax_forward x=f32:3x37:nc"));
    EXPECT_THAT(text, testing::HasSubstr("captured into a graph (make it before the capture begins: by "
                                         "Context::prepare()"));
  });
  softmax_forward(context_, of(3, 0), of(3, 1), {}, stream());
}

TEST_F(FirstCalls, InACaptureTakeAPlanThatWasPrepared) {
  const Request prepared = Request::parse("softmax_forward x=f32:2x37");
  context_.prepare({&prepared, 1});
  for (const auto& rows : {int64_t{2}, int64_t{4}}) {  // by prepare(), by plan()
    const CUgraph graph = capture([&] { softmax_forward(context_, of(rows, 0), of(rows, 1), {}, stream()); });
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(kernels_of(graph).size(), 1U) << rows;
  }
}

TEST_F(FirstCalls, InACaptureThatTheDefaultStreamWouldSpoilAreRefused) {
  CUstream blocking = nullptr;
  ASSERT_EQ(device_->call(&device::DriverTable::cuStreamCreate, &blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(device_->call(&device::DriverTable::cuStreamBeginCapture_v2, blocking, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
  EXPECT_THAT(refused([&] { softmax_forward(context_, of(3, 0), of(3, 1)); }), testing::HasSubstr("has no plan yet"));
  CUgraph graph = nullptr;
  EXPECT_EQ(device_->call(&device::DriverTable::cuStreamEndCapture, blocking, &graph), CUDA_SUCCESS);
  EXPECT_EQ(calls().cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(calls().cuStreamDestroy_v2(blocking), CUDA_SUCCESS);
}

TEST_F(FirstCalls, InACaptureAreNotTuned) {
  ContextOptions tuning = options();
  if (!tuning.environment->worker) tuning.environment->worker = KILN_PROGRAM;
  tuning.tuning = {TuningMode::within_budget, 60, 2};
  Context context(tuning);
  expect_intact([&] { refused([&] { softmax_forward(context, of(3, 0), of(3, 1), {}, stream()); }); });
  EXPECT_TRUE(context.explain(Request::parse("softmax_forward x=f32:3x37")).stored.empty());
}

TEST_F(FirstCalls, OfPlansAndOfOtherStreamsLeaveACaptureIntact) {
  const Request other = Request::parse("softmax_forward x=f32:2x37 n=?"),
                third = Request::parse("softmax_forward x=f32:1x37");
  device::Stream beside(device_);
  expect_intact([&] {
    context_.prepare({&other, 1});
    const Plan plan = context_.plan(third);
    softmax_forward(context_, of(3, 0), of(3, 1), {}, beside.raw());
    const DeviceMemory memory(context_, 64);
    const Context another(options());  // all that opening a device does
    EXPECT_NE(memory.data(), plan_.source().data());
  });
}

// Whatever the workspace of a plain call takes: an allocation, a larger one, one that another stream used.
TEST_F(FirstCalls, WithAWorkspaceOnOtherStreamsLeaveACaptureIntact) {
  const Request small = Request::parse("conv_forward x=f32:1x256x7x7 w=f32:64x256x3x3 pad=1");
  const Request large = Request::parse("conv_forward x=f32:1x512x7x7 w=f32:64x512x3x3 pad=1");
  if (context_.plan(small).workspace_bytes() == 0 || context_.plan(large).workspace_bytes() == 0) {
    GTEST_SKIP() << "the best estimate needs no workspace";
  }
  Operands convolution = make(large, 1);
  const auto call = [&](int64_t channels, Stream on) {
    conv_forward(context_, Tensor(convolution.device[0].pointer, f32, {1, channels, 7, 7}, nchw),
                 Tensor(convolution.device[1].pointer, f32, {64, channels, 3, 3}, nchw),
                 Tensor(convolution.device[2].pointer, f32, {1, 64, 7, 7}, nchw), {.pad = {1, 1}}, on);
  };
  device::Stream first(device_), second(device_);
  expect_intact([&] {
    call(256, first.raw());
    call(512, first.raw());
    call(512, second.raw());
    EXPECT_THAT(refused([&] { call(512, stream()); }), testing::HasSubstr("bytes of workspace cannot be captured"));
  });
}

}  // namespace
}  // namespace kiln::cuda_graph_test
