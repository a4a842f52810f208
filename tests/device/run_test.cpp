// The room as a whole: source through NVRTC, driver, memory, launch and events, on whatever device there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "error_of.h"
#include "kiln/device/event.h"
#include "kiln/device/launch.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "open_device.h"

namespace kiln::device::run_test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr const char* vector_add = R"(
extern "C" __global__ void add(float* out, const float* a, const float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
__constant__ float table[3] = {1.f, 2.f, 3.f};
extern "C" __global__ void shared_sum(float* out, const float* in, int n) {
  extern __shared__ float values[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = in[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = table[0];
    for (int i = 0; i < n; ++i) sum += values[i];
    out[0] = sum;
  }
}
)";

class Run : public testing::Test {
 protected:
  static void SetUpTestSuite() { open_ = new OpenDevice(); }
  static void TearDownTestSuite() { delete open_; }

  const std::shared_ptr<const ContextHandle>& context() const { return open_->context; }
  const OpenDevice& open() const { return *open_; }

  void launch_add(const Module& module, const Buffer& out, const Buffer& a, const Buffer& b, int n,
                  cuda_abi::CUstream stream) const {
    uint64_t pointers[] = {out.address(), a.address(), b.address()};
    void* parameters[] = {&pointers[0], &pointers[1], &pointers[2], &n};
    const Current current(*context());
    launch(module.function("add"), {static_cast<unsigned>(n + 127) / 128}, {128}, 0, stream, parameters);
  }

 private:
  static OpenDevice* open_;  // opening costs a second; no test changes it
};

OpenDevice* Run::open_ = nullptr;

TEST_F(Run, DeviceDescribesItself) {
  const DeviceInfo& info = open().device.info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.cc_major, 7);
  EXPECT_GT(info.sms, 0);
  EXPECT_GE(info.shared_per_block_optin, info.shared_per_block);
  EXPECT_EQ(info.warp_size, 32);
  EXPECT_EQ(info.emulated, open().driver->is_emulated());
  EXPECT_THAT(info.id(), HasSubstr(info.name));
  EXPECT_GE(open().driver->version(), 11080);
}

TEST_F(Run, AVectorAddCompiledHereIsRight) {
  const Module module = open().load(vector_add, "vector_add.cu");
  const Stream stream(context());
  for (const int n : {1, 127, 128, 1009}) {
    std::vector<float> a(static_cast<size_t>(n)), b(a.size());
    std::iota(a.begin(), a.end(), 0.5f);
    std::iota(b.begin(), b.end(), -3.0f);
    const Buffer device_a = upload(context(), a);
    const Buffer device_b = upload(context(), b);
    const Buffer out(context(), a.size() * sizeof(float));
    fill_words(*context(), out.address(), 0x7fc00000, a.size(), stream.raw());
    launch_add(module, out, device_a, device_b, n, stream.raw());
    stream.synchronize();
    EXPECT_TRUE(stream.is_idle());
    const auto result = download<float>(*context(), out.address(), a.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(result[i], a[i] + b[i]) << "n=" << n << " i=" << i;
  }
}

TEST_F(Run, TheEmulatorWorksBesideThisDriverInOneProcess) {
  const std::shared_ptr<const Driver> emulator = Driver::open({.library = "emulator"});
  const auto emulated = ContextHandle::acquire(Device(emulator, 0));
  const Buffer there = upload(emulated, std::vector<int>{1, 2, 3});
  const Buffer here = upload(context(), std::vector<int>{4, 5, 6});
  EXPECT_TRUE(emulator->is_emulated());
  EXPECT_THAT(download<int>(*emulated, there.address(), 3), testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(download<int>(*context(), here.address(), 3), testing::ElementsAre(4, 5, 6));
}

TEST_F(Run, EventsTellTheTimeOfAKernel) {
  const Module module = open().load(vector_add, "vector_add.cu");
  const int n = 1 << 16;
  const Buffer a = upload(context(), std::vector<float>(n, 1.f));
  const Buffer out(context(), n * sizeof(float));
  const Stream stream(context());
  const Event start(context());
  const Event end(context());
  start.record(stream.raw());
  launch_add(module, out, a, a, n, stream.raw());
  end.record(stream.raw());
  end.synchronize();
  EXPECT_TRUE(end.is_done());
  EXPECT_GT(end.elapsed_ms(start), 0);
  EXPECT_LT(end.elapsed_ms(start), 1000);
}

TEST_F(Run, AStreamWaitsForAnEventOfAnother) {
  const Stream first(context());
  const Stream second(context());
  const Event filled(context(), Timing::none);
  const Buffer from(context(), 1 << 14);
  const Buffer to(context(), from.size());
  fill_bytes(*context(), from.address(), 0x5a, from.size(), first.raw());
  filled.record(first.raw());
  second.wait(filled);
  copy_on_device(*context(), to.address(), from.address(), to.size(), second.raw());
  second.synchronize();
  EXPECT_THAT(download<uint8_t>(*context(), to.address(), to.size()), Each(0x5a));
}

TEST_F(Run, PinnedMemoryIsCopiedBothWaysOnAStream) {
  const Stream stream(context());
  const HostBuffer host(context(), 1024);
  const Buffer device(context(), host.size());
  auto* const words = reinterpret_cast<uint32_t*>(host.data());
  std::iota(words, words + 256, 7u);
  copy_to_device(*context(), device.address(), host.data(), host.size(), stream.raw());
  stream.synchronize();
  std::fill(words, words + 256, 0u);
  copy_to_host(*context(), host.data(), device.address(), host.size(), stream.raw());
  stream.synchronize();
  EXPECT_EQ(words[0], 7u);
  EXPECT_EQ(words[255], 262u);
}

TEST_F(Run, FunctionsKnowTheirLimitsAndTakeMoreSharedMemoryOnRequest) {
  const Module module = open().load(vector_add, "vector_add.cu");
  const Function function = module.function("shared_sum");
  EXPECT_GE(function.attributes().max_threads_per_block, 256);
  EXPECT_EQ(function.attributes().static_shared_bytes, 0);
  EXPECT_GT(function.occupancy(128, 0), 0);
  EXPECT_LE(function.occupancy(128, 40000), function.occupancy(128, 1000));

  const int n = (open().device.info().shared_per_block + 4096) / 4;
  const unsigned bytes = static_cast<unsigned>(n) * 4;
  function.set_max_dynamic_shared(static_cast<int>(bytes));
  const Buffer in = upload(context(), std::vector<float>(static_cast<size_t>(n), 2.f));
  const Buffer out(context(), 4);
  uint64_t pointers[] = {out.address(), in.address()};
  int count = n;
  void* parameters[] = {&pointers[0], &pointers[1], &count};
  const Current current(*context());
  launch(function, {1}, {128}, bytes, nullptr, parameters);
  context()->synchronize();
  EXPECT_EQ(download<float>(*context(), out.address(), 1)[0], 2.f * static_cast<float>(n) + 1.f);
  EXPECT_THROW(function.set_max_dynamic_shared(open().device.info().shared_per_block_optin + 4), DriverError);
}

TEST_F(Run, GlobalsHaveAnAddressAndASize) {
  const Module module = open().load(vector_add, "vector_add.cu");
  const Global table = module.global("table");
  EXPECT_EQ(table.bytes, 12u);
  EXPECT_THAT(download<float>(*context(), table.address, 3), testing::ElementsAre(1.f, 2.f, 3.f));
}

TEST_F(Run, AMissingKernelIsNamedWithItsModule) {
  const Module module = open().load(vector_add, "vector_add.cu");
  const auto error = error_of<DriverError>([&] { module.function("subtract"); });
  EXPECT_EQ(error.result(), cuda_abi::CUDA_ERROR_NOT_FOUND);
  EXPECT_THAT(error.what(), HasSubstr("kernel 'subtract' in 'vector_add.cu'"));
  EXPECT_THROW(module.global("nothing"), DriverError);
}

TEST_F(Run, BrokenPtxIsRefusedWithTheDriversLog) {
  const std::string ptx =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() {\n  frobnicate.b32 %r1;\n}\n";
  const auto error = error_of<DriverError>([&] { Module(context(), ptx, "broken"); });
  EXPECT_THAT(error.what(), HasSubstr("cuModuleLoadDataEx of 'broken' failed: CUDA_ERROR_"));
  EXPECT_THAT(error.what(), HasSubstr("frobnicate"));
}

TEST_F(Run, ARefusedLaunchLeavesTheContextUsable) {
  const Module module = open().load(vector_add, "vector_add.cu");
  const Current current(*context());
  const auto error = error_of<DriverError>([&] {
    uint64_t pointer = 0;
    int n = 0;
    void* parameters[] = {&pointer, &pointer, &pointer, &n};
    launch(module.function("add"), {1}, {4096}, 0, nullptr, parameters);
  });
  EXPECT_FALSE(error.is_sticky());
  EXPECT_THAT(error.what(), HasSubstr("block (4096, 1, 1)"));
  EXPECT_NO_THROW(context()->synchronize());
}

TEST_F(Run, NothingIsBeingCapturedOutsideAGraph) {
  const Stream stream(context());
  EXPECT_FALSE(is_capturing(*context(), stream.raw()));
}

TEST_F(Run, FreeMemoryShrinksByWhatIsAllocated) {
  const size_t bytes = size_t{64} << 20;
  const ContextHandle::MemoryUse before = context()->memory();
  const Buffer buffer(context(), bytes);
  EXPECT_LE(context()->memory().free_bytes + bytes, before.free_bytes);
  EXPECT_EQ(context()->memory().total_bytes, before.total_bytes);
}

TEST_F(Run, AnImpossibleAllocationIsOutOfMemory) {
  const auto error = error_of<DriverError>([&] { Buffer(context(), size_t{1} << 46); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace kiln::device::run_test
