// Real kernels, compiled by NVRTC for every architecture, against host code.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core_fixture.h"
#include "core_nvrtc.h"

namespace kiln::emulator::test::core_kernels_test {
namespace {

class CompiledKernels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!nvrtc_present()) GTEST_SKIP() << "no NVRTC on this machine";
  }
  Module module(const std::string& source, const std::vector<std::string>& options = {}) {
    return std::move(Module(compile(source, GetParam(), options)).check(CheckLevel::full));
  }
};

std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-1.0f, 1.0f);
  std::vector<float> values(n);
  for (float& v : values) v = draw(engine);
  return values;
}

constexpr const char* matmul_source = R"(
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[16][17], bs[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    as[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k ? a[row * k + k0 + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = col < n && k0 + threadIdx.y < k ? b[(k0 + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
})";

TEST_P(CompiledKernels, TiledMatrixProductMatchesTheHost) {
  const int m = 37, n = 50, k = 41;
  Buffer<float> a(random_floats(m * k, 1)), b(random_floats(k * n, 2)), c(m * n);
  Module program = module(matmul_source);
  program.allow(a).allow(b).allow(c);
  program.launch("matmul", {4, 3}, {16, 16}, Arguments(a.address(), b.address(), c.address(), m, n, k));
  for (int row = 0; row < m; ++row) {
    for (int col = 0; col < n; ++col) {
      float expected = 0;
      for (int i = 0; i < k; ++i) expected = std::fma(a[row * k + i], b[i * n + col], expected);
      ASSERT_NEAR(c[row * n + col], expected, 1e-5) << row << ", " << col;
    }
  }
}

constexpr const char* reduction_source = R"(
extern "C" __global__ void sum(const float* in, float* out, int n) {
  __shared__ float partial[32];
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += in[i];
  for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
    for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) atomicAdd(out, s);
  }
})";

TEST_P(CompiledKernels, SumOfManyBlocksMatchesTheHost) {
  const int n = 10007;
  Buffer<float> in(random_floats(n, 3)), out(1);
  Module program = module(reduction_source);
  program.allow(in).allow(out);
  const Arguments arguments(in.address(), out.address(), n);
  LaunchRequest request = program.request("sum", {5}, {160}, arguments);
  request.host_threads = 2;
  const LaunchOutcome outcome = run(request);
  ASSERT_FALSE(outcome.fault) << outcome.fault->report;
  EXPECT_NEAR(out[0], std::accumulate(in.values().begin(), in.values().end(), 0.0), 1e-3);
}

constexpr const char* softmax_source = R"(
extern "C" __global__ void softmax(const float* in, float* out, int columns) {
  __shared__ float shared[32];
  const float* row = in + blockIdx.x * columns;
  float biggest = -__int_as_float(0x7f800000), sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) biggest = fmaxf(biggest, row[i]);
  for (int d = 16; d > 0; d /= 2) biggest = fmaxf(biggest, __shfl_xor_sync(0xffffffffu, biggest, d));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = biggest;
  __syncthreads();
  for (int w = 0; w < blockDim.x / 32; ++w) biggest = fmaxf(biggest, shared[w]);
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - biggest);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) sum += shared[w];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[blockIdx.x * columns + i] = __fdividef(__expf(row[i] - biggest), sum);
  }
})";

TEST_P(CompiledKernels, SoftmaxOfRowsMatchesTheHost) {
  for (const char* math : {"--use_fast_math", "--fmad=true"}) {
    const int rows = 3, columns = 211;
    Buffer<float> in(random_floats(rows * columns, 4)), out(rows * columns);
    for (float& x : in.values()) x *= 20;
    Module program = module(softmax_source, {math});
    program.allow(in).allow(out);
    program.launch("softmax", {rows}, {96}, Arguments(in.address(), out.address(), columns));
    for (int row = 0; row < rows; ++row) {
      const float* const x = in.data() + row * columns;
      const double biggest = *std::max_element(x, x + columns);
      double sum = 0;
      for (int i = 0; i < columns; ++i) sum += std::exp(x[i] - biggest);
      for (int i = 0; i < columns; ++i) {
        const double expected = std::exp(x[i] - biggest) / sum;
        ASSERT_NEAR(out[row * columns + i], expected, 2e-5 * expected + 1e-9) << math << " " << row << ", " << i;
      }
    }
  }
}

constexpr const char* histogram_source = R"(
extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, unsigned* most, int n) {
  __shared__ unsigned local[64];
  for (int b = threadIdx.x; b < 64; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[in[i] % 64], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 64; b += blockDim.x) {
    if (local[b] != 0) atomicMax(most, atomicAdd(&bins[b], local[b]) + local[b]);
  }
})";

TEST_P(CompiledKernels, HistogramCountsEveryValueOnce) {
  const int n = 5003;
  Buffer<uint8_t> in(n);
  std::mt19937 engine(5);
  for (uint8_t& x : in.values()) x = static_cast<uint8_t>(engine() % 200);
  Buffer<uint32_t> bins(64), most(1);
  Module program = module(histogram_source);
  program.allow(in).allow(bins).allow(most);
  const Arguments arguments(in.address(), bins.address(), most.address(), n);
  LaunchRequest request = program.request("histogram", {7}, {50}, arguments);
  request.host_threads = 2;
  const LaunchOutcome outcome = run(request);
  ASSERT_FALSE(outcome.fault) << outcome.fault->report;
  std::vector<uint32_t> expected(64);
  for (const uint8_t x : in.values()) ++expected[x % 64];
  EXPECT_EQ(bins.values(), expected);
  EXPECT_EQ(most[0], *std::max_element(expected.begin(), expected.end()));
}

constexpr const char* pipeline_source = R"(
#if __CUDA_ARCH__ >= 800
__device__ void copy4(float* to, const float* from, bool inside) {
  const unsigned at = __cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(at), "l"(from), "r"(inside ? 4 : 0) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending> __device__ void wait() { asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory"); }
#else
__device__ void copy4(float* to, const float* from, bool inside) { *to = inside ? *from : 0.0f; }
__device__ void commit() {}
template <int pending> __device__ void wait() {}
#endif
// out[i] = in[i - 1] + in[i] + in[i + 1], a tile of 128 at a time, the next two tiles on their way meanwhile.
extern "C" __global__ void stencil(const float* in, float* out, int n) {
  __shared__ float stage[3][130];
  const int tiles = (n + 127) / 128;
  const auto fetch = [&](int tile) {
    for (int k = threadIdx.x; tile < tiles && k < 130; k += blockDim.x) {
      const int i = tile * 128 + k - 1;
      const bool inside = i >= 0 && i < n;
      copy4(&stage[tile % 3][k], inside ? in + i : in, inside);
    }
    commit();
  };
  fetch(0);
  fetch(1);
  for (int tile = 0; tile < tiles; ++tile) {
    wait<1>();
    __syncthreads();
    fetch(tile + 2);
    for (int k = threadIdx.x; k < 128 && tile * 128 + k < n; k += blockDim.x) {
      out[tile * 128 + k] = stage[tile % 3][k] + stage[tile % 3][k + 1] + stage[tile % 3][k + 2];
    }
  }
})";

TEST_P(CompiledKernels, PipelineOfAsynchronousCopiesMatchesTheHost) {
  const int n = 1000;
  Buffer<float> in(random_floats(n, 6)), out(n);
  const std::string ptx = compile(pipeline_source, GetParam());
  EXPECT_EQ(ptx.find("cp.async") != std::string::npos, GetParam() != "compute_75");
  Module program(ptx);
  program.allow(in).allow(out).check(CheckLevel::full);
  program.launch("stencil", {1}, {64}, Arguments(in.address(), out.address(), n));
  for (int i = 0; i < n; ++i) {
    const float before = i > 0 ? in[i - 1] : 0, after = i + 1 < n ? in[i + 1] : 0;
    ASSERT_EQ(out[i], before + in[i] + after) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, CompiledKernels, testing::ValuesIn(architectures()),
                         [](const auto& arch) { return arch.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CompiledKernels);

}  // namespace
}  // namespace kiln::emulator::test::core_kernels_test
