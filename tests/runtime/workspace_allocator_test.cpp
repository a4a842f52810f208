// Workspace from an allocator that the application brings, as engines with a caching allocator do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device_fixture.h"
#include "kiln/context.h"
#include "kiln/conv.h"
#include "kiln/device/stream.h"
#include "kiln/softmax.h"

namespace kiln::workspace_allocator_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WorkspaceAllocatorTest : public DeviceTest {
 protected:
  static constexpr const char* line = "conv_forward x=f32:1x256x7x7 w=f32:32x256x3x3 pad=1";

  // Options under which `line` is served by a variant that needs workspace, taken from `memory`.
  ContextOptions options_with_allocator() {
    const Request request = Request::parse(line);
    ContextOptions made = options();
    for (const ExplainedCandidate& candidate : Context(options()).explain(request).estimated) {
      if (candidate.algorithm == "conv_implicit_gemm_splitk") made = options_with_winner(request, candidate);
    }
    made.workspace_allocator.allocate = [this](size_t bytes, Stream stream) {
      events_.push_back("allocate on " + name_of(stream));
      bytes_ = static_cast<int64_t>(bytes);
      return memory_;
    };
    made.workspace_allocator.release = [this](void* memory, size_t bytes, Stream stream) {
      events_.push_back("release on " + name_of(stream));
      EXPECT_EQ(memory, memory_);
      EXPECT_EQ(static_cast<int64_t>(bytes), bytes_);
    };
    return made;
  }

  void call(Context& context, std::map<std::string, void*>& memory, Stream stream) {
    conv_forward(context, Tensor(memory.at("x"), DType::f32, {1, 256, 7, 7}, nchw),
                 Tensor(memory.at("w"), DType::f32, {32, 256, 3, 3}, nchw),
                 Tensor(memory.at("y"), DType::f32, {1, 32, 7, 7}, nchw), {.pad = {1, 1}}, stream);
  }

  std::string name_of(Stream stream) const { return stream == stream_.raw() ? "its stream" : "another stream"; }

  device::Stream stream_{device_};
  std::byte* const memory_ = static_cast<std::byte*>(upload(std::vector<std::byte>(1 << 22, std::byte{0xff})));
  int64_t bytes_ = 0;
  std::vector<std::string> events_;
};

TEST_F(WorkspaceAllocatorTest, ServesTheCallsThatNeedWorkspace) {
  Context context(options_with_allocator());
  const int64_t needed = context.plan(Request::parse(line)).workspace_bytes();
  ASSERT_GT(needed, 0);
  EXPECT_THAT(events_, IsEmpty()) << "a plan has the caller's workspace";
  expect_right(line, [&](std::map<std::string, void*>& memory) {
    call(context, memory, stream_.raw());
    stream_.synchronize();
  });
  EXPECT_EQ(bytes_, needed);
  EXPECT_THAT(events_, ElementsAre("allocate on its stream", "release on its stream"));
  events_.clear();
  const Tensor x(memory_, DType::f32, {2, 4}, {4, 1});
  softmax_forward(context, x, x, {}, stream_.raw());
  EXPECT_THAT(events_, IsEmpty()) << "nothing is asked for where nothing is needed";
}

TEST_F(WorkspaceAllocatorTest, IsToldOfWhatItGaveAlsoWhenTheCallIsRefused) {
  ContextOptions options = options_with_allocator();
  const auto allocate = options.workspace_allocator.allocate;
  int64_t offset = 0;
  bool empty = false;
  options.workspace_allocator.allocate = [&](size_t bytes, Stream stream) -> void* {
    allocate(bytes, stream);
    return empty ? nullptr : memory_ + offset;
  };
  options.workspace_allocator.release = [this](void*, size_t, Stream) { events_.emplace_back("release"); };
  Context context(options);
  std::map<std::string, void*> memory;
  for (const char* name : {"x", "w", "y"}) memory[name] = upload(std::vector<float>(32 * 256 * 9));
  offset = 4;
  EXPECT_THAT(refusal_of([&] { call(context, memory, stream_.raw()); }),
              HasSubstr("the workspace is not 256-byte aligned"));
  EXPECT_THAT(events_, ElementsAre("allocate on its stream", "release"));
  events_.clear();
  empty = true;
  EXPECT_THAT(refusal_of([&] { call(context, memory, stream_.raw()); }, ErrorCode::out_of_memory),
              HasSubstr("the workspace allocator has no"));
  EXPECT_THAT(events_, ElementsAre("allocate on its stream"));
}

TEST_F(WorkspaceAllocatorTest, LetsCallsThatNeedWorkspaceBeCaptured) {
  using namespace cuda_abi;
  Context context(options_with_allocator());
  context.plan(Request::parse(line));
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  expect_right(line, [&](std::map<std::string, void*>& memory) {
    using Table = device::DriverTable;
    ASSERT_EQ(device_->call(&Table::cuStreamBeginCapture_v2, stream_.raw(), CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
    call(context, memory, stream_.raw());
    ASSERT_EQ(device_->call(&Table::cuStreamEndCapture, stream_.raw(), &graph), CUDA_SUCCESS);
    ASSERT_EQ(device_->call(&Table::cuGraphInstantiateWithFlags, &executable, graph, 0ULL), CUDA_SUCCESS);
    ASSERT_EQ(device_->call(&Table::cuGraphLaunch, executable, stream_.raw()), CUDA_SUCCESS);
    stream_.synchronize();
  });
  device_->call(&device::DriverTable::cuGraphExecDestroy, executable);
  device_->call(&device::DriverTable::cuGraphDestroy, graph);
}

TEST_F(WorkspaceAllocatorTest, HasTwoFunctions) {
  ContextOptions options = this->options();
  options.workspace_allocator.allocate = [](size_t, Stream) -> void* { return nullptr; };
  EXPECT_THAT(refusal_of([&] { Context context(options); }), HasSubstr("has one function of two"));
}

}  // namespace
}  // namespace kiln::workspace_allocator_test
