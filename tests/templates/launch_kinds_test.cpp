// Demands of a launch beyond a grid, each by a kernel that needs it, on the test device: persistent grids with much
// shared memory, tiles of contractions that need much, blocks that wait for each other, launches that begin early,
// tensor maps.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/execution/executable.h"
#include "variant_check.h"

namespace kiln::testing_support::launch_kinds_test {
namespace {

class LaunchKinds : public testing::Test {
 protected:
  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << "there is no device of " << target_.arch.name();
  }

  // Runs `steps` of `source` on x, and returns y.
  std::vector<float> run(const std::string& source, std::vector<Step> steps, const std::vector<float>& inputs,
                         size_t outputs, int64_t n = 1) const {
    Program program{{source}, std::move(steps)};
    program.workspace_bytes = workspace_end(program.steps);
    const execution::Executable executable = device_->load(program, target_, {"x", "y"});
    const device::Stream stream(device_->context);
    const device::Buffer x = device::upload(device_->context, inputs);
    const device::Buffer y(device_->context, outputs * sizeof(float));
    const device::Buffer workspace(device_->context, 256);
    executable.run(stream.raw(), std::vector<cuda_abi::CUdeviceptr>{x.address(), y.address()}, {}, n,
                   workspace.address());
    stream.synchronize();
    return device::download<float>(*device_->context, y.address(), outputs);
  }

  const Target target_ = target_of(9, 0);
  const TestDevice* const device_ = TestDevice::find(target_.arch);
};

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

Launch launch_of(std::string entry, std::vector<Argument> arguments) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.arguments = std::move(arguments);
  return launch;
}

TEST_F(LaunchKinds, APersistentGridWithMuchSharedMemoryIsOfTheBlocksThatFit) {
  constexpr int64_t blocks = 300, n = blocks * 128 - 5, shared = 100 * 1024;
  Launch launch = launch_of("twice", {OperandArgument{"x"}, OperandArgument{"y"}, Scalar::n});
  launch.grid[0] = Count{0, 1, 128};
  launch.persistent = true;
  launch.block[0] = 128;
  launch.dynamic_shared_bytes = shared;
  const std::vector<float> x = counting(n);
  const std::vector<float> y = run(R"(
extern "C" __global__ void __launch_bounds__(128) twice(const float* x, float* y, long long n) {
  extern __shared__ float values[];  // 200 each
  for (long long i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) {
    values[threadIdx.x * 200 + 199] = x[i];
    y[i] = 2 * values[threadIdx.x * 200 + 199];
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) y[n] = gridDim.x;
}
)",
                                   {launch}, x, n + 1, n);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]) << i;
  const device::DeviceInfo& info = device_->context->device().info();
  EXPECT_EQ(y.back(), static_cast<float>(std::min<int64_t>(blocks, info.shared_per_sm / shared * info.sms)));
}

// Choices that the spaces leave out, because they stay within what a block has without asking for more.
TEST_F(LaunchKinds, TilesOfContractionsMayHaveMoreThan48KiB) {
  Target roomy = target_;
  roomy.arch.shared_per_block_default = roomy.arch.shared_per_block;
  const std::string tiles = "BLOCK_K=32,BLOCK_M=256,BLOCK_N=64,SLICES=1,STAGES=2,THREAD_M=8,THREAD_N=8";
  struct Case {
    std::string algorithm, request;
    unsigned shared_bytes;
  };
  for (const auto& [algorithm, request_line, shared_bytes] :
       {Case{"gemm_tiled", "gemm a=f16:260x104 b=f16:104x72 c=f16:260x72", 2 * 32 * (256 + 64) * 4},
        // Blocks of four classes.
        Case{"conv_backward_data_implicit_gemm",
             "conv_backward_data dy=f16:1x64x9x9:nhwc w=f16:64x72x3x3:nhwc dx=f16:1x72x17x17:nhwc pad=1 stride=2",
             2 * 32 * (256 + 64) * 4}}) {
    const Request request = Request::parse(request_line);
    const BoundAlgorithm bound = built_in_catalogue().find(algorithm)->on(request, roomy);
    const Program program = bound.program(built_in_catalogue().library(), Config::parse(tiles), Rules::necessary);
    EXPECT_EQ(std::get<Launch>(program.steps.front()).dynamic_shared_bytes, shared_bytes) << request_line;
    VariantChecker checker(built_in_catalogue(), request, thorough(), target_);
    EXPECT_TRUE(checker.matches_reference(program, algorithm + " " + tiles));
  }
}

TEST_F(LaunchKinds, BlocksOfACooperativeLaunchWaitForEachOther) {
  constexpr int blocks = 7;
  Launch launch = launch_of("sums", {OperandArgument{"x"}, OperandArgument{"y"}, WorkspaceArgument{0, 64}});
  launch.grid[0] = Count{blocks};
  launch.persistent = true;
  launch.attributes.cooperative = true;
  launch.block[0] = 32;
  // Each block gives one number, and sums those of all.
  const std::vector<float> y = run(R"(
extern "C" __global__ void sums(const float* x, float* y, unsigned* memory) {
  volatile float* parts = (volatile float*)(memory + 8);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    atomicAdd(memory, 1u);
    while (atomicAdd(memory, 0u) < gridDim.x) {}
    __threadfence();
    float sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
    y[blockIdx.x] = sum;
  }
}
)",
                                   {ClearWorkspace{0, 64}, launch}, counting(blocks), blocks);
  EXPECT_EQ(y, std::vector<float>(blocks, blocks * (blocks + 1) / 2));
}

TEST_F(LaunchKinds, AProgrammaticLaunchSeesWhatTheOneBeforeWrote) {
  Launch first = launch_of("first", {OperandArgument{"x"}, WorkspaceArgument{0, 128}});
  Launch second = launch_of("second", {WorkspaceArgument{0, 128}, OperandArgument{"y"}});
  first.block[0] = second.block[0] = 32;
  second.attributes.programmatic = true;
  const std::vector<float> y = run(R"(
extern "C" __global__ void first(const float* x, float* parts) {
  asm volatile("griddepcontrol.launch_dependents;");
  parts[threadIdx.x] = x[threadIdx.x] + 1;
}
extern "C" __global__ void second(const float* parts, float* y) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  y[threadIdx.x] = 2 * parts[31 - threadIdx.x];
}
)",
                                   {first, second}, counting(32), 32);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], 2.0f * static_cast<float>(33 - i)) << i;
}

// A box at the corner of a tensor of 45 x 13, half of it outside, whose rows are exchanged by the swizzle.
TEST_F(LaunchKinds, ATensorMapFindsABoxOfATensor) {
  constexpr int64_t columns = 45, rows = 13, pitch = 48;
  TensorMapArgument map;
  map.memory = OperandArgument{"x"};
  map.extents = {Count{columns}, Count{rows}};
  map.byte_strides = {pitch * 4};
  map.box = {32, 8};
  map.swizzle = Swizzle::bytes_128;
  Launch launch = launch_of("box", {map, OperandArgument{"y"}});
  launch.block[0] = 32;
  const std::vector<float> x = counting(pitch * rows);
  const std::vector<float> y = run(R"(
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void box(const __grid_constant__ TensorMap map, float* y) {
  __shared__ alignas(1024) float tile[8][32];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(8 * 32 * 4) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(32), "r"(8), "r"(at)
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{\n.reg .pred done;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra wait;\n}" ::"r"(at)
      : "memory");
  for (int row = 0; row < 8; ++row) {
    const int piece = (threadIdx.x / 4) ^ row;  // of 16 bytes
    y[row * 32 + threadIdx.x] = tile[row][piece * 4 + threadIdx.x % 4];
  }
}
)",
                                   {launch}, x, 8 * 32);
  for (int64_t row = 0; row < 8; ++row) {
    for (int64_t column = 0; column < 32; ++column) {
      const bool inside = row + 8 < rows && column + 32 < columns;
      const float expected = inside ? x[static_cast<size_t>((row + 8) * pitch + column + 32)] : 0;
      EXPECT_EQ(y[static_cast<size_t>(row * 32 + column)], expected) << row << ", " << column;
    }
  }
}

}  // namespace
}  // namespace kiln::testing_support::launch_kinds_test
