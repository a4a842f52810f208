// The example of a user template on the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kiln/base/error.h"
#include "kiln/execution/compile.h"
#include "kiln/templates/catalogue.h"
#include "kiln/templates/user_templates.h"
#include "variant_check.h"

namespace kiln::user_template_test {
namespace {

using testing::HasSubstr;
using testing_support::TestDevice;
using testing_support::VariantChecker;

const Catalogue& catalogue() {
  static const Catalogue made = make_catalogue(embedded_sources(), {KILN_EXAMPLES "/user_template"});
  return made;
}

const Algorithm& conv_stem() {
  return *catalogue().find("conv_stem");
}

void expect_all_right(const Request& request) {
  VariantChecker checker(catalogue(), request);
  const std::vector<Config> legal = conv_stem().on(request, TestDevice::get().target).legal();
  EXPECT_FALSE(legal.empty());
  for (const Config& config : legal) {
    if (config.find("THREADS") != 64 && config != legal.front()) continue;
    EXPECT_TRUE(checker.matches_reference({"conv_stem", config}));
  }
}

TEST(UserTemplate, IsRightWithUserCode) {
  expect_all_right(Request::parse(
      "conv_forward x=f32:1x3x15x17 w=f32:16x3x3x3 y=f16:1x16x8x9:nhwc pad=1 stride=2 epilogue=user:e "
      "epilogue.b=f32:16",
      {{"e", Expression("--- prologue\n(x - mean) * (c + 1)\n---\nsilu(acc + b[k])", {"b"}, {"mean"})}}));
}

TEST(UserTemplate, IsRightWithStagesBlendAndDynamicBatch) {
  expect_all_right(Request::parse(
      "conv_forward x=f16:4x1x9x7 w=f16:24x1x3x2 y=f32:4x24x11x5:nhwc pad=2,0 mode=convolution dilation=1,2 "
      "alpha=any beta=any epilogue=bias+relu n=?"));
}

TEST(UserTemplate, SaysWhereItDoesNotApply) {
  const Target target = TestDevice::get().target;
  const auto reason = [&](const char* line) {
    return conv_stem().on(Request::parse(line), target).refusal().value_or("");
  };
  EXPECT_THAT(reason("conv_forward x=f32:1x3x9x9:nhwc w=f32:16x3x3x3"), HasSubstr("x must be packed nchw"));
  EXPECT_THAT(reason("conv_forward x=f32:1x8x9x9 w=f32:16x8x3x3 y=f32:1x16x7x7:nhwc"),
              HasSubstr("more than 4 channels"));
  EXPECT_THAT(reason("pool_forward x=f32:1x3x9x9 window=2"), HasSubstr("serves conv_forward"));
}

TEST(UserTemplate, RulesPruneItsPoints) {
  const Request request = Request::parse("conv_forward x=f32:1x3x9x9 w=f32:20x3x3x3 y=f32:1x20x7x7:nhwc");
  EXPECT_EQ(conv_stem().on(request, TestDevice::get().target).refusal(Config::parse("THREADS=64,TILE_K=8")),
            "TILE_K divides the channels (THREADS=64,TILE_K=8): legal with TILE_K=1 or 4");
}

TEST(UserTemplate, IsACandidateLikeOthers) {
  const Request request = Request::parse("conv_forward x=f32:1x3x9x9 w=f32:16x3x3x3 y=f16:1x16x7x7:nhwc");
  const TestDevice& device = TestDevice::get();
  bool found = false;
  for (const Candidate& candidate : catalogue().candidates(request, device.target, device.figures).ranked) {
    found = found || candidate.choice.algorithm == "conv_stem";
  }
  EXPECT_TRUE(found);
}

// The operation has only the constants that all operations have: with the numbers of its calls.
TEST(UserTemplate, ServesNormalisations) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kiln_user_norm";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "my_norm.cu") << R"(
#include "lib/blend.cuh"
#include "lib/math.cuh"
extern "C" __global__ void my_norm(const TX* x, const TW* w, TY* y, float alpha, float beta, float epsilon) {
  const Index row = static_cast<Index>(blockIdx.x);
  x += row * X_STRIDE_0;
  y += row * Y_STRIDE_0;
  float sum = 0.0f, squares = 0.0f;
  for (int i = 0; i < X_EXTENT_1; ++i) sum += to_float(x[i * X_STRIDE_1]);
  const float mean = MODE_RMS ? 0.0f : sum / X_EXTENT_1;
  for (int i = 0; i < X_EXTENT_1; ++i) squares += (to_float(x[i * X_STRIDE_1]) - mean) * (to_float(x[i * X_STRIDE_1]) - mean);
  const float inverse = squares < infinity() ? rsqrtf(squares / X_EXTENT_1 + epsilon) : nan();  // as NormForward says
  for (int i = threadIdx.x; i < X_EXTENT_1; i += THREADS) {
    float value = (to_float(x[i * X_STRIDE_1]) - mean) * inverse;
    if (HAS_W) value *= to_float(w[i * W_STRIDE_1]);
    float old = 0.0f;
    if (BETA != SCALE_ZERO) old = to_float(y[i * Y_STRIDE_1]);
    value = blended<ALPHA, BETA>(value, alpha, old, beta);
    if (EPILOGUE_RELU) value = value < 0.0f ? 0.0f : value;
    y[i * Y_STRIDE_1] = from_float<TY>(value);
  }
}
)";
  std::ofstream(folder / "my_norm.json") << R"({
  "kiln_template": 1, "operation": "norm_forward",
  "applies": {
    "rows of a matrix": "X_EXTENT_2 * X_EXTENT_3 * X_EXTENT_4 * X_EXTENT_5 == 1 && AXES_COUNT == 1 && AXES_0 == 1 && !DYNAMIC_N",
    "no shift, residual or activation": "ACTIVATION_IDENTITY && !HAS_B && !EPILOGUE_ADD"
  },
  "parameters": {"THREADS": [32, 64]},
  "launches": [{"kernel": "my_norm", "grid": ["X_EXTENT_0"], "block": ["THREADS"],
                "arguments": ["x", "w", "y", "alpha", "beta", "epsilon"]}]
})";
  const Catalogue catalogue = make_catalogue(embedded_sources(), {folder.string()});
  const Algorithm& norm = *catalogue.find("my_norm");
  const Target target = TestDevice::get().target;
  const Request request = Request::parse(
      "norm_forward x=f16:5x37 y=f32:5x37:48,1 axes=1 w=f32:1x37 mode=rms "
      "epilogue=relu alpha=any beta=any");
  VariantChecker checker(catalogue, request);
  EXPECT_TRUE(checker.matches_reference({"my_norm", Config::parse("THREADS=32")}));
  EXPECT_EQ(norm.on(Request::parse("norm_forward x=f32:5x3x7 axes=1"), target).refusal(), "rows of a matrix");
  EXPECT_EQ(norm.on(Request::parse("norm_forward x=f32:5x3x1x1x1x7 axes=1"), target).refusal(), "rows of a matrix");
  for (const char* more : {"b=f32:1x7", "activation=tanh"}) {
    EXPECT_EQ(norm.on(Request::parse(std::string("norm_forward x=f32:5x7 axes=1 ") + more), target).refusal(),
              "no shift, residual or activation");
  }
  const Request statistics = Request::parse("norm_forward x=f32:5x7 inv_deviation=f32:5x1 axes=1");
  EXPECT_EQ(norm.on(statistics, target).refusal(), "it gives no inv_deviation") << "of which no launch tells a kernel";
  std::filesystem::remove_all(folder);
}

// Errors of the compiler are told by the author's file and lines, before and behind what they include.
TEST(UserTemplate, MistakesAreToldByFileAndLine) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kiln_user_mistakes";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "my_copy.cu") << R"(// A copy.
int first = nothing_1;
#include "lib/user_code.cuh"
#include "lib/math.cuh"
int second = nothing_2;

extern "C" __global__ void copy_kernel(const TX* x, TY* y) {
  y[threadIdx.x] = nothing_3;
})";
  std::ofstream(folder / "my_copy.json") << R"({
  "kiln_template": 1, "operation": "softmax_forward",
  "launches": [{"kernel": "copy_kernel", "grid": [1], "block": [32], "arguments": ["x", "y"]}]
})";
  const Catalogue catalogue = make_catalogue(embedded_sources(), {folder.string()});
  const TestDevice& device = TestDevice::get();
  const Request request = Request::parse("softmax_forward x=f32:1x32 epilogue=user:e", {{"e", Expression("acc * 2")}});
  const Program program = catalogue.program(request, device.target, {"my_copy", Config()});
  try {
    (void)execution::compile(*device.nvrtc, program, device.target, nullptr, execution::Products::ptx);
    ADD_FAILURE() << "it compiles";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    for (const char* place : {"(2): error: identifier \"nothing_1\"", "(5): error: identifier \"nothing_2\"",
                              "(8): error: identifier \"nothing_3\""}) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("my_copy.cu") + place));
    }
  }
  std::filesystem::remove_all(folder);
}

// The driver would say that there is no such function, and the preprocessor nothing.
TEST(UserTemplate, WhatNoCompilerSaysIsToldByFileAndLine) {
  const std::string kernel = "extern \"C\" __global__ void copy_kernel(const TX* x, TY* y) { y[0] = x[0]; }\n";
  const auto refusal = [](const std::string& text, const std::string& launched = "copy_kernel") {
    const SourceLibrary user({{"user/my_copy.cu", text}, {"user/my_copy.json", R"({
  "kiln_template": 1, "operation": "softmax_forward", "summary": "kernel",
  "parameters": {"TILE": [1, 2]}, "constants": {"TWICE": "2 * TILE"},
  "launches": [
    {"kernel" :
       ")" + launched + R"(", "grid": [1], "block": [32], "arguments": ["x", "y"]}]
})"}});
    try {
      (void)user_algorithms(user);
      return std::string("accepted");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.message();
    }
  };
  EXPECT_EQ(refusal(kernel), "accepted");
  EXPECT_EQ(refusal(kernel, "copy_kernels"), "my_copy.json: line 6: my_copy.cu holds no kernel copy_kernels");
  EXPECT_THAT(refusal("// other_kernel\n/* other_kernel */" + kernel, "other_kernel"), HasSubstr("line 6"));
  EXPECT_EQ(refusal("// one\n#if TILE > 1\n#endif\n" + kernel),
            "my_copy.cu: line 2: the preprocessor does not see TILE, a constant of the template, and takes it for "
            "undefined");
  EXPECT_THAT(refusal("/* #if TILE\n*/\n  #  ifdef TWICE\n#endif\n" + kernel), HasSubstr("line 3: "));
  EXPECT_THAT(refusal("#define A \\\n  1\n#if A\n#elif \\\n  ROW\n#endif\n" + kernel), HasSubstr("line 4: "));
  EXPECT_EQ(
      refusal("#if __CUDA_ARCH__ >= 800  // TILE\n#endif\n#define TILES TILE\n#include \"lib/math.cuh\"\n" + kernel),
      "accepted");
}

// A product of matrices whose descriptor says that it takes prologues, and the same that does not say so.
TEST(UserTemplate, TakesAPrologueWhereItSaysSo) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kiln_user_gemm";
  std::filesystem::create_directories(folder);
  for (const std::string name : {"my_gemm", "my_plain_gemm"}) {
    std::ofstream(folder / (name + ".cu")) << R"(
#include "lib/user_code.cuh"
extern "C" __global__ void my_gemm(const TA* a, const TB* b, TC* c, UserArguments user) {
  float sum = 0.0f;
  for (int k = 0; k < A_EXTENT_1; ++k) {
    sum += user_entered(a[blockIdx.x * A_STRIDE_0 + k * A_STRIDE_1], k, user) *
           to_float(b[k * B_STRIDE_0 + threadIdx.x * B_STRIDE_1]);
  }
  c[blockIdx.x * C_STRIDE_0 + threadIdx.x * C_STRIDE_1] = from_float<TC>(sum);
}
)";
    std::ofstream(folder / (name + ".json")) << R"({
  "kiln_template": 1, "operation": "gemm",
  "applies": {"one product": "A_RANK == 2 && !DYNAMIC_N && ALPHA == 1 && BETA == 0"},
  "launches": [{"kernel": "my_gemm", "grid": ["A_EXTENT_0"], "block": ["C_EXTENT_1"],
                "arguments": ["a", "b", "c", "user"]}],
  "prologue": )" << (name == "my_gemm" ? "true" : "false")
                                             << "}";
  }
  const Catalogue catalogue = make_catalogue(embedded_sources(), {folder.string()});
  const Request request = Request::parse("gemm a=f16:5x37 b=f32:37x33 c=f32:5x33 epilogue=user:e",
                                         {{"e", Expression("--- prologue\n(x - mean) * (c % 4)", {}, {"mean"})}});
  VariantChecker checker(catalogue, request);
  EXPECT_TRUE(checker.matches_reference({"my_gemm", Config()}));
  EXPECT_EQ(catalogue.find("my_plain_gemm")->on(request, TestDevice::get().target).refusal(),
            "its kernels take no prologue");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kiln::user_template_test
