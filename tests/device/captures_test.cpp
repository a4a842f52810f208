// Calls of a driver while streams are captured: the thread says that it knows what it does, for that call only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fake_driver.h"
#include "kiln/base/error.h"
#include "kiln/device/cuda_graph.h"
#include "kiln/device/event.h"
#include "kiln/device/memory.h"
#include "kiln/device/module.h"
#include "kiln/device/stream.h"

namespace kiln::device::captures_test {
namespace {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the tests speak the driver API

thread_local FakeDriver* driver = nullptr;
thread_local int relaxed_calls = 0;
thread_local int other_calls = 0;

CUresult note() {
  (driver->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED ? relaxed_calls : other_calls) += 1;
  return CUDA_SUCCESS;
}

class Captures : public testing::Test {
 protected:
  Captures() {
    driver = &fake_;
    relaxed_calls = other_calls = 0;
    DriverTable& table = fake_.table;
    table.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t) { return *address = 4096, note(); };
    table.cuMemFree_v2 = [](CUdeviceptr) { return note(); };
    table.cuMemHostAlloc = [](void** pointer, size_t, unsigned) {
      static int memory = 0;
      return *pointer = &memory, note();
    };
    table.cuMemFreeHost = [](void*) { return note(); };
    table.cuModuleLoadDataEx = [](CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
      return *module = reinterpret_cast<CUmodule>(8), note();
    };
    table.cuModuleUnload = [](CUmodule) { return note(); };
    table.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
      return *function = reinterpret_cast<CUfunction>(8), note();
    };
    table.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) { return *value = 1, note(); };
    table.cuEventCreate = [](CUevent* event, unsigned) {
      return *event = reinterpret_cast<CUevent>(8), CUDA_SUCCESS;  // which no capture forbids
    };
    table.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
    table.cuEventQuery = [](CUevent) { return note(); };
    table.cuEventSynchronize = [](CUevent) { return note(); };
  }
  ~Captures() override { driver = nullptr; }

  FakeDriver fake_;
};

TEST_F(Captures, AreNotDisturbedByWhatTheyForbidOtherwise) {
  {
    const auto context = fake_.context();
    const Buffer buffer(context, 64);
    const HostBuffer pinned(context, 64);
    const Module module(context, "image", "test");
    (void)module.function("kernel").attributes();
    const Event event(context);
    (void)event.is_done();
    event.synchronize();
  }
  EXPECT_GE(relaxed_calls, 9);
  EXPECT_EQ(other_calls, 0);
  EXPECT_EQ(fake_.capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL) << "as the thread had it";
}

/// A driver that captures, up to a call that fails.
class CudaGraphs : public Captures {
 protected:
  CudaGraphs() {
    DriverTable& table = fake_.table;
    table.cuStreamCreate = [](CUstream* stream, unsigned) {
      return *stream = reinterpret_cast<CUstream>(8), say("stream");
    };
    table.cuStreamDestroy_v2 = [](CUstream) { return say("end stream"); };
    table.cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode mode) {
      return say(mode == CU_STREAM_CAPTURE_MODE_RELAXED ? "begin" : "begin and disturb others");
    };
    table.cuStreamEndCapture = [](CUstream, CUgraph* graph) {
      return *graph = reinterpret_cast<CUgraph>(8), say("end");
    };
    table.cuGraphInstantiateWithFlags = [](CUgraphExec* executable, CUgraph, unsigned long long) {
      return *executable = reinterpret_cast<CUgraphExec>(8), say("instantiate");
    };
    table.cuGraphLaunch = [](CUgraphExec, CUstream) { return CUDA_SUCCESS; };
    table.cuGraphDestroy = [](CUgraph) { return say("free graph"); };
    table.cuGraphExecDestroy = [](CUgraphExec) { return say("free executable"); };
  }

  static CUresult say(const char* call) {
    driver->calls.emplace_back(call);
    return note();
  }
  void make(const std::function<void(CUstream)>& enqueue) {
    const auto context = fake_.context();
    fake_.calls.clear();
    const CudaGraph graph(context, enqueue);
    graph.launch(nullptr);
  }
  /// Without those of contexts.
  std::vector<std::string> calls() const {
    std::vector<std::string> all = fake_.calls;
    std::erase_if(all, [](const std::string& call) {
      return call.starts_with("push") || call == "pop" || call == "retain" || call == "release";
    });
    return all;
  }
};

TEST_F(CudaGraphs, AreMadeBesideOtherCapturesAndGiveAllBack) {
  make([](CUstream) {});
  EXPECT_THAT(calls(), testing::ElementsAre("stream", "begin", "end", "end stream", "instantiate", "free graph",
                                            "free executable"));
  EXPECT_EQ(other_calls, 0);
}

TEST_F(CudaGraphs, GiveAllBackWhereOneCannotBeMade) {
  EXPECT_THROW(make([](CUstream) { throw Error(ErrorCode::unsupported, "no"); }), Error);
  EXPECT_THAT(calls(), testing::ElementsAre("stream", "begin", "end", "free graph", "end stream"));
  fake_.table.cuGraphInstantiateWithFlags = [](CUgraphExec*, CUgraph, unsigned long long) {
    return CUDA_ERROR_NOT_SUPPORTED;
  };
  EXPECT_THROW(make([](CUstream) {}), DriverError);
  EXPECT_THAT(calls(), testing::ElementsAre("stream", "begin", "end", "end stream", "free graph"));
  fake_.table.cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode) { return CUDA_ERROR_NOT_SUPPORTED; };
  EXPECT_THROW(make([](CUstream) { ADD_FAILURE() << "nothing is captured"; }), DriverError);
  EXPECT_THAT(calls(), testing::ElementsAre("stream", "end stream"));
  EXPECT_EQ(fake_.capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL) << "as the thread had it";
}

TEST_F(Captures, OfAnotherStreamCountForTheDefaultOneThatWouldWaitForIt) {
  fake_.table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus*) { return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; };
  EXPECT_TRUE(is_capturing(*fake_.context(), nullptr));
}

}  // namespace
}  // namespace kiln::device::captures_test
