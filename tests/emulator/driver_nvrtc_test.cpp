// The emulator beside a real NVRTC: what NVRTC compiles runs, and NVRTC bears the emulator in libcuda's place.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver_fixture.h"
#include "kiln/base/environment.h"
#include "kiln/device/nvrtc.h"

namespace kiln::emulator::testing::driver_nvrtc_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

std::string compile(const std::string& source, const std::string& arch) {
  const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  return nvrtc->compile(source, "test.cu", {.arch = arch}).ptx;
}

// Sums the squares of n numbers in one block, through shared memory and shuffles. With `planted` the block writes one
// element too far.
const std::string sum_source = R"(
extern "C" __global__ void __launch_bounds__(256) sum_of_squares(float* out, const float* in, int n) {
  __shared__ float partial[8];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += in[i] * in[i];
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < 8; ++warp) sum += partial[warp];
    out[OUT] = sum;
  }
}
)";

class DriverNvrtc : public DriverTest {
 protected:
  // Runs sum_of_squares on 1000 numbers, the result going to element `place` of a result of one element.
  CUresult run_sum(const std::string& place, const std::string& arch, CUdeviceptr& out) {
    const std::string source = "#define OUT " + place + sum_source;
    const CUfunction sum = function(load(compile(source, arch)), "sum_of_squares");
    std::vector<float> numbers(1000, 0.5f);
    CUdeviceptr in = allocate(numbers.size() * sizeof(float));
    out = allocate(sizeof(float));
    EXPECT_EQ(cuda.cuMemcpyHtoD_v2(in, numbers.data(), numbers.size() * sizeof(float)), CUDA_SUCCESS);
    int n = 1000;
    void* parameters[] = {&out, &in, &n};
    EXPECT_EQ(cuda.cuLaunchKernel(sum, 1, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    return cuda.cuCtxSynchronize();
  }
};

TEST_F(DriverNvrtc, CompilesWhatTheEmulatorRuns) {
  for (const char* arch : {"compute_90", "sm_90a"}) {
    CUdeviceptr out = 0;
    ASSERT_EQ(run_sum("0", arch, out), CUDA_SUCCESS) << cuda.last_fault();
    float sum = 0;
    EXPECT_EQ(cuda.cuMemcpyDtoH_v2(&sum, out, sizeof sum), CUDA_SUCCESS);
    EXPECT_EQ(sum, 250.0f);
  }
}

TEST_F(DriverNvrtc, ShowsAPlantedBugWithItsKernelBlockThreadAndLine) {
  CUdeviceptr out = 0;
  CaptureStderr();
  EXPECT_EQ(run_sum("1", "compute_90", out), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(GetCapturedStderr(), AllOf(HasSubstr("sum_of_squares"), HasSubstr("block (0, 0, 0)"),
                                         HasSubstr("thread (0, 0, 0)"), HasSubstr("PTX line"), HasSubstr("st.global"),
                                         HasSubstr("0 bytes past the end of allocation 2 of 4 bytes")));
}

// Each thread reads a column of a shared tile of which a row takes STRIDE words, then writes every SPREAD-th element.
const std::string pattern_source = R"(
extern "C" __global__ void __launch_bounds__(1024) pattern(float* out) {
  __shared__ float tile[32 * 33];
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  tile[y * STRIDE + x] = x;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += tile[x * STRIDE + (y + k) % 32];
  out[(blockIdx.x * 1024 + threadIdx.x) * SPREAD] = sum;
}
)";

class DriverNvrtcPatterns : public DriverTest {
 protected:
  explicit DriverNvrtcPatterns(const Variables& environment = {}) : DriverTest(environment) {}

  nlohmann::json run_pattern(const std::string& stride, const std::string& spread) {
    const std::string source = "#define STRIDE " + stride + "\n#define SPREAD " + spread + pattern_source;
    const CUfunction pattern = function(load(compile(source, "compute_90")), "pattern");
    CUdeviceptr out = allocate(size_t{1000} * 1024 * 8 * sizeof(float));
    void* parameters[] = {&out};
    EXPECT_EQ(cuda.cuLaunchKernel(pattern, 1000, 1, 1, 1024, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
    return nlohmann::json::parse(cuda.last_launch());
  }
};

double seconds(const nlohmann::json& launched) {
  return launched["modelled_time"]["seconds"];
}

TEST_F(DriverNvrtcPatterns, CostModelledTimeWhenBanksConflict) {
  const nlohmann::json padded = run_pattern("33", "1"), conflicting = run_pattern("32", "1");
  const uint64_t few = padded["counters"]["shared_wavefronts"], many = conflicting["counters"]["shared_wavefronts"];
  EXPECT_GT(many, 25 * few);
  EXPECT_EQ(conflicting["modelled_time"]["bound"], "l1");
  EXPECT_GT(seconds(conflicting), 5 * seconds(padded));
}

TEST_F(DriverNvrtcPatterns, CostModelledTimeWhenAccessIsScattered) {
  const nlohmann::json dense = run_pattern("33", "1"), scattered = run_pattern("33", "8");
  EXPECT_EQ(dense["counters"]["global_sectors"], 1000 * 1024 / 8);
  EXPECT_EQ(scattered["counters"]["global_sectors"], 1000 * 1024);
  EXPECT_GT(seconds(scattered), seconds(dense));
}

class DriverNvrtcPatternsOnOneThread : public DriverNvrtcPatterns {
 protected:
  DriverNvrtcPatternsOnOneThread() : DriverNvrtcPatterns({{"KILN_EMULATOR_THREADS", "1"}}) {}
};

TEST_F(DriverNvrtcPatternsOnOneThread, CostTheSameModelledTimeAsOnMany) {
  const std::string here = run_pattern("33", "8").dump();
  const Emulator other(Variables{{"KILN_EMULATOR_THREADS", "5"}});
  // The same launch through another instance, with other addresses and other host threads.
  CUcontext there = nullptr;
  CUmodule module = nullptr;
  CUfunction pattern = nullptr;
  CUdeviceptr out = 0;
  const std::string ptx = compile("#define STRIDE 33\n#define SPREAD 8" + pattern_source, "compute_90");
  ASSERT_EQ(other.cuDevicePrimaryCtxRetain(&there, 0), CUDA_SUCCESS);
  ASSERT_EQ(other.cuCtxSetCurrent(there), CUDA_SUCCESS);
  ASSERT_EQ(other.cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(other.cuModuleGetFunction(&pattern, module, "pattern"), CUDA_SUCCESS);
  ASSERT_EQ(other.cuMemAlloc_v2(&out, size_t{1000} * 1024 * 8 * sizeof(float)), CUDA_SUCCESS);
  void* parameters[] = {&out};
  ASSERT_EQ(other.cuLaunchKernel(pattern, 1000, 1, 1, 1024, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(nlohmann::json::parse(other.last_launch()).dump(), here);
}

// Runs this program again with the emulator where the loader finds libcuda: NVRTC 13 opens and questions it.
TEST(NvrtcBesideTheEmulator, CompilesThoughLibcudaIsTheEmulator) {
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-libcuda-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::filesystem::create_symlink(KILN_EMULATOR_LIBRARY, folder + "/libcuda.so.1");
  const char* path = std::getenv("LD_LIBRARY_PATH");
  const std::string search = "LD_LIBRARY_PATH=" + folder + (path == nullptr ? "" : ":" + std::string(path));
  std::vector<char*> environment = {const_cast<char*>(search.c_str())};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (variable.starts_with("LD_LIBRARY_PATH=") || variable.starts_with("GTEST_")) continue;  // reports are ours
    environment.push_back(*entry);
  }
  environment.push_back(nullptr);

  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::vector<const char*> arguments = {program.c_str(),
                                              "--gtest_filter=NvrtcBesideTheEmulator.DISABLED_InTheChild",
                                              "--gtest_also_run_disabled_tests", nullptr};
  pid_t child = 0;
  ASSERT_EQ(
      posix_spawn(&child, program.c_str(), nullptr, nullptr, const_cast<char**>(arguments.data()), environment.data()),
      0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

TEST(NvrtcBesideTheEmulator, DISABLED_InTheChild) {
  void* libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(libcuda, nullptr) << dlerror();
  ASSERT_NE(dlsym(libcuda, "kiln_emulator_last_fault"), nullptr) << "another libcuda was found";
  for (const char* arch : {"compute_75", "sm_90a"}) {
    EXPECT_THAT(compile("#define OUT 0" + sum_source, arch), HasSubstr(".entry sum_of_squares"));
  }
}

// A matrix times two, in tiles of 32 x 32 that a producer's copies bring to two stages of shared memory and consumers
// send back, swizzled, as such kernels are written for sm_90.
const std::string pipeline_source = R"(
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
using u32 = unsigned;

__device__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void init(u32 bar, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals));
}
__device__ void arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ void wait(u32 bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\n"
      "bra LAB_WAIT;\nDONE:\n}" ::"r"(bar), "r"(parity) : "memory");
}
__device__ bool elected() {
  u32 pred = 0;
  asm volatile("{\n.reg .b32 %%rx;\n.reg .pred %%px;\nelect.sync %%rx|%%px, %1;\n@%%px mov.s32 %0, 1;\n}"
               : "+r"(pred) : "r"(0xffffffffu));
  return pred != 0;
}

extern "C" __global__ void __launch_bounds__(160) doubled(const __grid_constant__ TensorMap in,
                                                          const __grid_constant__ TensorMap out, int tiles) {
  __shared__ alignas(1024) float stage[2][1024], result[1024];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      init(shared_address(&full[s]), 1);
      init(shared_address(&empty[s]), 128);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int y = blockIdx.x * 32;
  if (threadIdx.x >= 128) {
    if (!elected()) return;
    asm volatile("prefetch.tensormap [%0];" ::"l"(&in) : "memory");
    for (int t = 0; t < tiles; ++t) {
      const u32 bar = shared_address(&full[t % 2]);
      wait(shared_address(&empty[t % 2]), (t / 2 & 1) ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(4096) : "memory");
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
          " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(stage[t % 2])),
          "l"(&in), "r"(bar), "r"(t * 32), "r"(y), "l"(0x1000000000000000ull) : "memory");
    }
    return;
  }
  for (int t = 0; t < tiles; ++t) {
    wait(shared_address(&full[t % 2]), t / 2 & 1);
    for (int k = threadIdx.x; k < 1024; k += 128) {
      // Word k of a tile of 32 x 32 stands at the same place on both sides; the planted bug doubles the wrong ones.
      result[k] = 2 * stage[(t + BUG) % 2][k];
    }
    arrive(shared_address(&empty[t % 2]));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&out),
                   "r"(shared_address(result)), "r"(t * 32), "r"(y) : "memory");
      asm volatile("cp.async.bulk.commit_group;");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    asm volatile("bar.sync 1, 128;" ::: "memory");
  }
}
)";

class TensorPipeline : public DriverTest {
 protected:
  static constexpr unsigned rows = 50, columns = 100, pitch = 112;  // floats; the last tiles stick out

  explicit TensorPipeline(const Variables& environment = {{"KILN_EMULATOR_CHECK", "full"}}) : DriverTest(environment) {}
  CUtensorMap map_of(CUdeviceptr address) {
    CUtensorMap map = {};
    const uint64_t extents[] = {columns, rows}, strides[] = {pitch * sizeof(float)};
    const unsigned box[] = {32, 32}, element_strides[] = {1, 1};
    EXPECT_EQ(cuda.cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(address),
                                          extents, strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                          CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    return map;
  }
  /// Doubles a matrix that counts from 0; what comes out, gaps included.
  std::vector<float> doubled(const std::string& bug) {
    const CUfunction kernel = function(load(compile("#define BUG " + bug + pipeline_source, "sm_90a")), "doubled");
    std::vector<float> numbers(rows * pitch);
    for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k);
    const size_t bytes = numbers.size() * sizeof(float);
    const CUdeviceptr in = allocate(bytes), out = allocate(bytes);
    EXPECT_EQ(cuda.cuMemcpyHtoD_v2(in, numbers.data(), bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuMemsetD32Async(out, 0, numbers.size(), nullptr), CUDA_SUCCESS);
    CUtensorMap from = map_of(in), to = map_of(out);
    int tiles = (columns + 31) / 32;
    void* parameters[] = {&from, &to, &tiles};
    EXPECT_EQ(cuda.cuLaunchKernel(kernel, (rows + 31) / 32, 1, 1, 160, 1, 1, 0, nullptr, parameters, nullptr),
              CUDA_SUCCESS);
    cuda.cuMemcpyDtoH_v2(numbers.data(), out, bytes);
    return numbers;
  }
};

TEST_F(TensorPipeline, OfAProducerAndConsumersRunsUnderFullChecks) {
  const std::vector<float> result = doubled("0");
  ASSERT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << cuda.last_fault();
  for (unsigned k = 0; k < rows * pitch; ++k) {
    ASSERT_EQ(result[k], k % pitch < columns ? 2.0f * static_cast<float>(k) : 0) << k / pitch << ", " << k % pitch;
  }
  const auto counters = nlohmann::json::parse(cuda.last_launch())["counters"];
  // Sectors of the tiles' parts in the matrix: rows of 128 bytes, the last column's of 16.
  EXPECT_EQ(counters["unique_load_sectors"], rows * (3 * 4 + 1));
  EXPECT_EQ(counters["unique_store_sectors"], rows * (3 * 4 + 1));
  EXPECT_GT(nlohmann::json::parse(cuda.last_launch())["modelled_time"]["dram"], 0.0);
}

TEST_F(TensorPipeline, ThatReadsTheWrongStageIsCaught) {
  CaptureStderr();
  doubled("1");
  EXPECT_THAT(GetCapturedStderr(), AllOf(HasSubstr("kernel doubled"), HasSubstr("ld.shared.f32")));
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_nvrtc_test
