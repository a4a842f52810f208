// Real kernels, compiled by NVRTC for every architecture, against host code.
#include <cmath>
#include <numeric>
#include <random>

#include "core_fixture.h"
#include "core_nvrtc.h"

namespace kiln::emulator::test {
namespace {

class CompiledKernels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!nvrtc_present()) GTEST_SKIP() << "no NVRTC on this machine";
  }
  Module module(const std::string& source, const std::vector<std::string>& options = {}) {
    return Module(compile(source, GetParam(), options));
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

INSTANTIATE_TEST_SUITE_P(Architectures, CompiledKernels, testing::ValuesIn(architectures()),
                         [](const auto& arch) { return arch.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CompiledKernels);

}  // namespace
}  // namespace kiln::emulator::test
