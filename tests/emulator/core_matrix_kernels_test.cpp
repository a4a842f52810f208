// A pipelined matrix product on tensor cores, in CUDA C++ with inline assembly, compiled by NVRTC for every
// architecture: right to the bit, silent under full checks, and with planted bugs that are noticed.
#include <cmath>
#include <random>

#include "core_fixture.h"
#include "core_nvrtc.h"
#include "core_small_floats.h"

namespace kiln::emulator::test::core_matrix_kernels_test {
namespace {

// c[m][n] = sum of a[m][k] * b[n][k]. Blocks of 64 x 64 with 2 x 2 warps, 32 of k at a time in `STAGES` stages. Rows of
// a stage have four pieces of 16 bytes, which change places by the row so that ldmatrix meets no bank twice.
constexpr const char* source = R"(
typedef unsigned short Half;
constexpr int tile = 64, depth = 32;

__device__ unsigned piece_at(const Half* stage, int row, int piece, bool swizzled) {
  const int place = swizzled ? piece ^ (row / 2 % 4) : piece;
  return static_cast<unsigned>(__cvta_generic_to_shared(stage + row * depth + place * 8));
}

__device__ void copy_piece(unsigned to, const Half* from, bool inside) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
#else
  const uint4 piece = inside ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
               ::"r"(to), "r"(piece.x), "r"(piece.y), "r"(piece.z), "r"(piece.w) : "memory");
#endif
}

__device__ void commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

__device__ void wait_for_all_but_one() {
#if __CUDA_ARCH__ >= 800 && BUG != 1
  asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

__device__ void load_matrices(unsigned (&d)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(at) : "memory");
}

__device__ void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  const unsigned b[2] = {b0, b1};
  for (int half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." TYPE "." TYPE ".f32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
  }
#endif
}

extern "C" __global__ void product(const Half* a, const Half* b, float* c, int m, int n, int k) {
  __shared__ __align__(128) Half a_stages[STAGES][tile * depth], b_stages[STAGES][tile * depth];
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile, steps = k / depth;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const auto fetch = [&](int step) {
    for (int p = threadIdx.x; step < steps && p < tile * 4; p += blockDim.x) {
      const int row = p / 4, piece = p % 4, at = step * depth + piece * 8;
      const bool a_inside = BUG == 5 || first_row + row < m, b_inside = first_column + row < n;
      copy_piece(piece_at(a_stages[step % STAGES], row, piece, true), a_inside ? a + (first_row + row) * k + at : a,
                 a_inside);
      copy_piece(piece_at(b_stages[step % STAGES], row, piece, true),
                 b_inside ? b + (first_column + row) * k + at : b, b_inside);
    }
    commit();
  };
  float sums[2][4][4] = {};
  fetch(0);
  fetch(1);
  for (int step = 0; step < steps; ++step) {
    wait_for_all_but_one();
    if (BUG != 2) __syncthreads();
    if (BUG != 3) fetch(step + 2);
    const Half* const a_stage = a_stages[step % STAGES];
    const Half* const b_stage = b_stages[step % STAGES];
    for (int inner = 0; inner < depth; inner += 16) {
      unsigned a_part[2][4], b_part[2][4];
      for (int i = 0; i < 2; ++i) {
        load_matrices(a_part[i], piece_at(a_stage, warp_row + i * 16 + lane % 16, inner / 8 + lane / 16, true));
        load_matrices(b_part[i], piece_at(b_stage, warp_column + i * 16 + lane % 8 + lane / 16 * 8,
                                          inner / 8 + lane / 8 % 2, BUG != 4));
      }
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 4; ++j) multiply_add(sums[i][j], a_part[i], b_part[j / 2][j % 2 * 2], b_part[j / 2][j % 2 * 2 + 1]);
      }
    }
    if (BUG == 3) fetch(step + 2);
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int e = 0; e < 4; ++e) {
        const int row = first_row + warp_row + i * 16 + lane / 4 + e / 2 * 8;
        const int column = first_column + warp_column + j * 8 + lane % 4 * 2 + e % 2;
        if (row < m && column < n) c[row * n + column] = sums[i][j][e];
      }
    }
  }
})";

enum Bug { none, no_wait, no_barrier, early_reuse, swizzle_on_one_side, no_zero_fill };

class TensorKernels : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int m = 80, n = 72, k = 160;

  void SetUp() override {
    if (!nvrtc_present()) GTEST_SKIP() << "no NVRTC on this machine";
  }
  static bool is_turing() { return GetParam() == "compute_75"; }

  /// Runs the product, and leaves the result in c_.
  LaunchOutcome run_product(const std::string& type, Bug bug) {
    const SmallFormat& format = type == "f16" ? half_format : bfloat_format;
    std::mt19937 random(38);
    for (Buffer<uint16_t>* factor : {&a_, &b_}) {
      for (uint16_t& x : factor->values()) x = format.encode(static_cast<double>(random() % 2001) / 1000.0 - 1);
    }
    Module module(compile(
        source, GetParam(),
        {"-DTYPE=\"" + type + "\"", "-DBUG=" + std::to_string(bug), bug == early_reuse ? "-DSTAGES=2" : "-DSTAGES=3"}));
    module.allow(a_, "a").allow(b_, "b").allow(c_, "c").check(CheckLevel::full);
    const Arguments arguments(a_.address(), b_.address(), c_.address(), m, n, k);
    LaunchRequest request = module.request("product", {2, 2}, {128}, arguments);
    request.instruction_limit = 10'000'000;
    return run(request);
  }

  /// Elements of c_ that are not the sum in the order of k.
  int wrong(const std::string& type) const {
    const SmallFormat& format = type == "f16" ? half_format : bfloat_format;
    int found = 0;
    for (size_t row = 0; row < m; ++row) {
      for (size_t column = 0; column < n; ++column) {
        float sum = 0;
        for (size_t i = 0; i < k; ++i) {
          sum = std::fma(static_cast<float>(format.value(a_[row * k + i])),
                         static_cast<float>(format.value(b_[column * k + i])), sum);
        }
        found += c_[row * n + column] == sum ? 0 : 1;
      }
    }
    return found;
  }

  Buffer<uint16_t> a_{size_t{m} * k}, b_{size_t{n} * k};
  Buffer<float> c_{size_t{m} * n};
};

TEST_P(TensorKernels, AreRightAndSilent) {
  for (const std::string type : {"f16", "bf16"}) {
    if (is_turing() && type == "bf16") continue;
    const LaunchOutcome outcome = run_product(type, none);
    ASSERT_FALSE(outcome.fault) << outcome.fault->report;
    EXPECT_EQ(wrong(type), 0) << type;
    const uint64_t steps = k / 16, warps = 4 * 4;
    EXPECT_EQ(outcome.counters.tensor, warps * steps * 8 * (is_turing() ? 2 : 1));
    EXPECT_EQ(outcome.counters.tensor_multiply_adds, uint64_t{128} * 128 * k);
    EXPECT_EQ(outcome.counters.matrix_loads, warps * steps * 4);
  }
}

TEST_P(TensorKernels, WithPlantedBugsAreReported) {
  for (const Bug bug : {no_wait, no_barrier, early_reuse}) {
    if (is_turing() && bug == no_wait) continue;
    const LaunchOutcome outcome = run_product("f16", bug);
    ASSERT_TRUE(outcome.fault) << bug;
    EXPECT_EQ(outcome.fault->kind, FaultKind::race) << outcome.fault->report;
  }
  const LaunchOutcome beyond = run_product("f16", no_zero_fill);
  ASSERT_TRUE(beyond.fault);
  EXPECT_EQ(beyond.fault->kind, FaultKind::illegal_address) << beyond.fault->report;
  EXPECT_FALSE(run_product("f16", swizzle_on_one_side).fault);
  EXPECT_GT(wrong("f16"), m * n / 2);
}

INSTANTIATE_TEST_SUITE_P(Architectures, TensorKernels, testing::ValuesIn(architectures()),
                         [](const auto& arch) { return arch.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TensorKernels);

}  // namespace
}  // namespace kiln::emulator::test::core_matrix_kernels_test
