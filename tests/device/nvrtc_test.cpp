#include "kiln/device/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "error_of.h"
#include "fake_driver.h"
#include "kiln/base/environment.h"
#include "kiln/device/arch.h"

namespace kiln::device::nvrtc_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* two_kernels = R"(
extern "C" __global__ void add(float* out, const float* a, const float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
extern "C" __global__ void __launch_bounds__(128) reverse(float* out, const float* in) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}
)";

std::shared_ptr<const Nvrtc> nvrtc() {
  return Nvrtc::open({.library = Environment::read().nvrtc});
}

/// An architecture that every supported NVRTC knows.
const std::string sm_80 = real_arch(8, 0);

TEST(Nvrtc, KnowsItsVersionAndArchitectures) {
  const auto compiler = nvrtc();
  EXPECT_GE(compiler->version(), (NvrtcVersion{11, 8}));
  EXPECT_TRUE(compiler->supports(8, 0));
  EXPECT_FALSE(compiler->supports(1, 0));
  EXPECT_FALSE(compiler->path().empty());
}

TEST(Nvrtc, OneCompileForARealArchitectureYieldsPtxCubinAndResources) {
  const Compiled compiled = nvrtc()->compile(two_kernels, "two.cu", {.arch = sm_80});
  EXPECT_THAT(compiled.ptx, AllOf(HasSubstr(".target sm_80"), HasSubstr(".entry add("), HasSubstr(".entry reverse(")));
  EXPECT_NE(compiled.ptx.back(), '\0');
  EXPECT_THAT(compiled.cubin, StartsWith("\x7f"
                                         "ELF"));
  EXPECT_GT(compiled.seconds, 0);
  ASSERT_EQ(compiled.resources.size(), 2u);
  for (const KernelResources& kernel : compiled.resources) {
    EXPECT_EQ(kernel.arch, "sm_80");
    EXPECT_GT(kernel.registers, 0);
    EXPECT_EQ(kernel.spill_stores, 0);
    EXPECT_EQ(kernel.static_shared, kernel.name == "reverse" ? 512 : 0) << kernel.name;
  }
}

TEST(Nvrtc, ReportsTheSpillsOfAKernelThatNeedsTooManyRegisters) {
  const std::string source = R"(
    extern "C" __global__ void greedy(float* out, const float* in) {
      float v[96];
      for (int k = 0; k < 96; ++k) v[k] = in[k * 1024 + threadIdx.x];
      for (int k = 0; k < 96; ++k) v[k] = v[k] * v[(k * 7 + 1) % 96] + v[(k + 48) % 96];
      for (int k = 0; k < 96; ++k) out[k * 1024 + threadIdx.x] = v[k];
    })";
  const Compiled compiled = nvrtc()->compile(source, "greedy.cu", {.arch = sm_80, .extra = {"--maxrregcount=32"}});
  ASSERT_EQ(compiled.resources.size(), 1u);
  EXPECT_LE(compiled.resources[0].registers, 32);
  EXPECT_GT(compiled.resources[0].spill_stores, 0);
  EXPECT_GT(compiled.resources[0].spill_loads, 0);
  EXPECT_GT(compiled.resources[0].stack, 0);
}

TEST(Nvrtc, AVirtualArchitectureYieldsPtxOnly) {
  const Compiled compiled = nvrtc()->compile(two_kernels, "two.cu", {.arch = virtual_arch(8, 0)});
  EXPECT_THAT(compiled.ptx, HasSubstr(".entry add("));
  EXPECT_TRUE(compiled.cubin.empty());
  EXPECT_TRUE(compiled.resources.empty());
}

TEST(Nvrtc, CompilesForTheArchitectureSpecificSet) {
  const auto compiler = nvrtc();
  if (compiler->version() < NvrtcVersion{12, 0}) {
    const auto error = error_of([&] { compiler->compile(two_kernels, "two.cu", {.arch = "sm_90a"}); });
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  } else {
    EXPECT_THAT(compiler->compile(two_kernels, "two.cu", {.arch = "sm_90a"}).ptx, HasSubstr(".target sm_90a"));
  }
}

TEST(Nvrtc, ACompileErrorShowsTheUsersLine) {
  const auto error = error_of(
      [] { nvrtc()->compile("__global__ void k(int* p) {\n  *p = missing;\n}\n", "mine.cu", {.arch = sm_80}); });
  EXPECT_EQ(error.code(), ErrorCode::compile_failed);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("mine.cu(2)"), HasSubstr("missing"), HasSubstr("--gpu-architecture=sm_80")));
}

TEST(Nvrtc, RefusesAnArchitectureThatItDoesNotKnow) {
  const auto error = error_of([] { nvrtc()->compile(two_kernels, "two.cu", {.arch = "sm_999"}); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("sm_999"), HasSubstr("80, ")));
}

std::shared_ptr<const Nvrtc> fake_nvrtc(const char* version, const char* archs) {
  ::setenv("FAKE_NVRTC_VERSION", version, 1);
  ::setenv("FAKE_NVRTC_ARCHS", archs, 1);
  return Nvrtc::open({.library = KILN_FAKE_NVRTC});
}

TEST(Nvrtc, KnowsArchitecturesInWhateverOrderItsLibraryNamesThem) {
  EXPECT_THAT(fake_nvrtc("12.4", "90 75 80")->supported_archs(), testing::ElementsAre(75, 80, 90));
  const auto none = fake_nvrtc("12.4", "");
  EXPECT_THAT(none->supported_archs(), testing::IsEmpty());
  EXPECT_FALSE(none->supports(8, 0));
}

TEST(Nvrtc, KnowsArchitectureSpecificSetsFromVersion12On) {
  const auto refusal = [](const char* version, const char* arch) {
    const auto old_or_new = fake_nvrtc(version, "80 90");
    return std::string(error_of([&] { old_or_new->compile(two_kernels, "two.cu", {.arch = arch}); }).what());
  };
  const auto is_refused = HasSubstr("cannot compile for");
  EXPECT_THAT(refusal("11.8", "sm_90a"), AllOf(is_refused, HasSubstr("none with suffix")));
  EXPECT_THAT(refusal("11.8", "sm_90f"), is_refused);
  for (const char* arch : {"sm_90", "compute_90"}) EXPECT_THAT(refusal("11.8", arch), testing::Not(is_refused));
  for (const char* version : {"12.0", "12.1", "13.0"}) {
    EXPECT_THAT(refusal(version, "sm_90a"), testing::Not(is_refused)) << version;
    EXPECT_THAT(refusal(version, "sm_100"), AllOf(is_refused, testing::Not(HasSubstr("none with suffix")))) << version;
  }
}

TEST(Nvrtc, RefusesAnOptionThatItDoesNotKnow) {
  const auto error =
      error_of([] { nvrtc()->compile(two_kernels, "two.cu", {.arch = sm_80, .extra = {"--no-such-option"}}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("--no-such-option"));
}

TEST(Nvrtc, OptionsHoldAllThatShapesTheBinary) {
  const auto options = nvrtc()->options({.arch = "sm_90a", .standard = "c++20", .extra = {"-DN=4"}});
  EXPECT_THAT(options, testing::IsSupersetOf({"--gpu-architecture=sm_90a", "--std=c++20", "-DN=4"}));
}

TEST(Nvrtc, CompilesOnSeveralThreadsAtOnce) {
  const auto compiler = nvrtc();
  std::vector<Compiled> compiled(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < compiled.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::string source =
          "extern \"C\" __global__ void k" + std::to_string(i) + "(int* p) { *p = " + std::to_string(i) + "; }";
      compiled[i] = compiler->compile(source, "k.cu", {.arch = sm_80});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < compiled.size(); ++i) {
    EXPECT_THAT(compiled[i].ptx, HasSubstr(".entry k" + std::to_string(i)));
    ASSERT_EQ(compiled[i].resources.size(), 1u);
    EXPECT_EQ(compiled[i].resources[0].name, "k" + std::to_string(i));
  }
}

TEST(Nvrtc, NamesALibraryThatIsNotThere) {
  const auto error = error_of([] { Nvrtc::open({.library = "/nowhere/libnvrtc.so"}); });
  EXPECT_EQ(error.code(), ErrorCode::missing_library);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("/nowhere/libnvrtc.so"), HasSubstr("KILN_NVRTC")));
}

TEST(Nvrtc, NamesTheEntryPointThatALibraryLacks) {
  EXPECT_THAT(error_of([] { Nvrtc::open({.library = "libm.so.6"}); }).what(),
              HasSubstr("libm.so.6 lacks the entry point nvrtcGetErrorString"));
}

TEST(Nvrtc, ADriverOlderThanItIsNamedWithBothVersions) {
  FakeDriver fake;
  fake.version = 10020;
  const auto compiler = nvrtc();
  const auto error = error_of([&] { require_driver_for(*compiler, *fake.driver()); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("supports CUDA 10.2"));
  EXPECT_THAT(error.what(), HasSubstr("NVRTC " + std::to_string(compiler->version().major)));
  EXPECT_THAT(error.hint(), HasSubstr("driver of branch"));
}

TEST(Nvrtc, ForAnOlderDriverABranchOrAnOlderNvrtcIsNamed) {
  struct Row {
    const char* nvrtc;
    int driver;
    const char* hint;
  };
  for (const auto& [version, driver, hint] :
       {Row{"11.8", 10020, "branch 450 or later, or NVRTC 10 (scripts/setup --nvrtc 10)"},
        Row{"12.4", 11000, "branch 525 or later, or NVRTC 11 (scripts/setup --nvrtc 11)"},
        Row{"13.0", 12000, "branch 580 or later, or NVRTC 12 (scripts/setup --nvrtc 12)"}}) {
    FakeDriver fake;
    fake.version = driver;
    const auto compiler = fake_nvrtc(version, "80");
    const auto error = error_of([&] { require_driver_for(*compiler, *fake.driver()); });
    EXPECT_THAT(error.hint(), HasSubstr(hint)) << version;
    EXPECT_THAT(error.message(), HasSubstr(std::string("is NVRTC ") + version));
    fake.version = 1000 * compiler->version().major - 10;
    EXPECT_THROW(require_driver_for(*compiler, *fake.driver()), Error) << version;
  }
}

TEST(Nvrtc, ADriverOfTheSameMajorVersionWillDo) {
  FakeDriver fake;
  const auto compiler = nvrtc();
  fake.version = 1000 * compiler->version().major;
  EXPECT_NO_THROW(require_driver_for(*compiler, *fake.driver()));
  fake.version = 10020;
  EXPECT_NO_THROW(require_driver_for(*compiler, *Driver::from_table(fake.table, "an emulator", true)));
}

TEST(Compiled, LoadsTheCubinOnARealDeviceAndBothOnTheEmulatedOne) {
  Compiled compiled;
  compiled.ptx = "ptx";
  const auto real = Driver::from_table({}, "real");
  EXPECT_EQ(compiled.image(*real), "ptx");
  compiled.cubin = "cubin";
  EXPECT_EQ(compiled.image(*real), "cubin");
  const auto emulated = Driver::from_table({}, "emulated", true);
  EXPECT_THAT(compiled.image(*emulated), testing::AllOf(testing::HasSubstr("ptx"), testing::HasSubstr("cubin")));
  compiled.cubin = "";
  EXPECT_EQ(compiled.image(*emulated), "ptx");
}

}  // namespace
}  // namespace kiln::device::nvrtc_test
