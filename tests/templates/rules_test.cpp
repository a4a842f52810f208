// Limits that every legal configuration keeps to, said without the rules that make it so.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kiln/templates/catalogue.h"

namespace kiln::rules_test {
namespace {

const Catalogue& catalogue() {
  static const Catalogue built_in = make_catalogue(embedded_sources());
  return built_in;
}

Target target() {
  return {Arch::of(9, 0), 13, 0};
}

// Calls `use(bound, config)` for all legal points of all algorithms that serve `request`.
template <class Use>
void for_each_legal(const Request& request, const Use& use) {
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    const BoundAlgorithm bound = algorithm.on(request, target());
    for (const Config& config : bound.legal()) use(bound, config);
  }
}

int64_t value(const Config& config, std::string_view parameter) {
  return config.find(parameter).value();
}

// Checks rows of `length` elements: a thread of a split takes elements at least twice, else the split only makes
// kernels.
TEST(Rules, OfSplitRowsLeaveAThreadTwoStepsAndMakeNoMoreBlocksThanAreOfUse) {
  struct Case {
    const char* line;
    int64_t length, rows;
  };
  for (const Case& of :
       {Case{"reduce x=f32:8x4096 axes=1", 4096, 8}, Case{"reduce x=f32:4096x64 axes=0", 4096, 64},
        Case{"norm_forward x=f32:4x5000", 5000, 4}, Case{"norm_backward dy=f16:4096x40 axes=0", 4096, 40}}) {
    int split = 0;
    for_each_legal(Request::parse(of.line), [&](const BoundAlgorithm& bound, const Config& config) {
      if (!config.find("SPLITS") || value(config, "SPLITS") == 1) return;
      ++split;
      const bool across = value(config, "ACROSS") != 0;
      const int64_t step = value(config, "LANES") * (across ? 1 : value(config, "VECTOR")) * value(config, "SPLITS");
      EXPECT_GT(of.length, step) << bound.algorithm().name() << " " << config.print() << ": " << of.line;
      const int64_t columns =
          value(config, "THREADS") / value(config, "LANES") * (across ? value(config, "VECTOR") : 1);
      EXPECT_LE((of.rows + columns - 1) / columns * value(config, "SPLITS"), 8192) << config.print() << ": " << of.line;
    });
    EXPECT_GT(split, 0) << of.line;
  }
}

// Points that differ in the tile alone: where there are few blocks, large tiles make fewer still.
TEST(Rules, OfTilesKeepThemSmallWhereThereAreFewBlocksAndWithinTheProblem) {
  struct Case {
    int k, pixels;
  };
  int large = 0, small = 0;
  for (const Case& of : {Case{256, 14}, Case{2048, 56}, Case{40, 7}}) {
    const int k = of.k, pixels = of.pixels;
    const std::string line = fmt::format("conv_forward x=f32:1x64x{1}x{1}:nhwc w=f32:{0}x64x3x3:nhwc pad=1", k, pixels);
    for_each_legal(Request::parse(line), [&](const BoundAlgorithm& bound, const Config& config) {
      if (bound.algorithm().name() != "conv_implicit_gemm") return;
      const int64_t m = value(config, "BLOCK_M"), n = value(config, "BLOCK_N");
      const int64_t blocks = (pixels * pixels + m - 1) / m * ((k + n - 1) / n);
      (m * n > 64 * 64 ? large : small) += 1;
      EXPECT_TRUE(m * n <= 64 * 64 || blocks >= 64) << config.print() << ": " << line;
      EXPECT_TRUE(m == 32 || m < 2 * pixels * pixels) << config.print() << ": " << line;
      EXPECT_TRUE(n == 32 || n < 2 * k) << config.print() << ": " << line;
    });
  }
  EXPECT_GT(large, 0);
  EXPECT_GT(small, 0);
}

// More channels, images or rows than a grid's second and third extents count.
constexpr const char* beyond_grids[] = {
    "conv_forward x=f32:1x1x4x4 w=f32:2000000x1x3x3 pad=1 fast",
    "conv_forward x=f32:1x1x4x4 w=f32:9000000x1x3x3 pad=1",
    "conv_forward x=f32:1x1x4x4 w=f32:9000000x1x1x1",
    "conv_forward x=f32:1x200000x4x4 w=f32:200000x1x3x3 groups=200000 pad=1",
    "conv_forward x=f32:1x200000x4x4:nhwc w=f32:200000x1x3x3:nhwc groups=200000 pad=1",
    "conv_backward_data dy=f32:1x1x4x4 w=f32:1x2000000x3x3 pad=1 fast",
    "conv_backward_data dy=f32:1x1x4x4 w=f32:1x9000000x3x3 pad=1",
    "conv_backward_data dy=f32:1x200000x4x4 w=f32:200000x1x3x3 groups=200000 pad=1",
    "conv_backward_filter x=f32:1x1x4x4 dy=f32:1x9000000x4x4 dw=f32:9000000x1x3x3 pad=1",
    "conv_backward_filter x=f32:1x2x64x64 dy=f32:1x2x64x64 dw=f32:2x2x601x601 pad=300",
    "conv_backward_bias dy=f32:2x9000000x2x2",
    "local_conv_forward x=f32:2x1x300x300 w=f32:180000x1x3x3 pad=1",
    "local_conv_backward_data dy=f32:2x2x300x300 w=f32:180000x1x3x3 pad=1",
    "local_conv_backward_filter x=f32:2x1x300x300 dy=f32:2x2x300x300 dw=f32:180000x1x3x3 pad=1",
    "gemm a=f32:70000x64x8 b=f32:70000x8x64",
    "gemm a=f32:64x8 b=f32:8x9000000",
    "gemm a=f32:9000000x8 b=f32:8x64",
    "pool_forward x=f32:300x3000x4x4 window=2",
    "pool_backward dy=f32:300x3000x3x3 x=f32:300x3000x4x4 window=2",
    "softmax_forward x=f32:3000000x40",
    "softmax_forward x=f32:300x40x3000 axis=1",
    "softmax_backward y=f32:3000000x40",
    "reduce x=f32:3000000x40 axes=1",
    "reduce x=f32:40x3000000 axes=0",
    "norm_forward x=f32:3000000x40",
    "norm_affine x=f32:3000000x40",
    "norm_backward dy=f32:40x3000000 axes=0",
    "activation_forward x=f32:3000000x40 y=f32:3000000x40:1,3000000 mode=relu",
    "activation_forward x=f32:70000x40x40 y=f32:70000x40x40:1600,1,40 mode=relu",
    "cross_entropy_forward x=f32:3000000x40",
    "local_norm_forward x=f32:300x3000x4x4",
};

TEST(Rules, KeepGridsToWhatADeviceTakes) {
  for (const char* line : beyond_grids) {
    const Request request = Request::parse(line);
    int64_t number = 0;
    for_each_legal(request, [&](const BoundAlgorithm& bound, const Config& config) {
      if (number++ % (bound.algorithm().space().size() / 1000 + 1) != 0) return;  // of thousands some
      const Program program = bound.program(catalogue().library(), config);
      for (const Step& step : program.steps) {
        const auto* launch = std::get_if<Launch>(&step);
        if (launch == nullptr) continue;
        const std::string what =
            fmt::format("{} {} {}: {}", bound.algorithm().name(), config.print(), launch->entry, line);
        EXPECT_LE(launch->grid[0].at(request.batch()), int64_t{0x7fffffff}) << what;
        EXPECT_LE(launch->grid[1].at(request.batch()), 65535) << what;
        EXPECT_LE(launch->grid[2].at(request.batch()), 65535) << what;
      }
    });
  }
}

std::string constant(const std::string& source, const std::string& name) {
  const std::string begin = "constexpr int " + name + " = ";
  const size_t at = source.find(begin);
  return at == std::string::npos ? "" : source.substr(at + begin.size(), source.find(';', at) - at - begin.size());
}

// 9 tiles: what stands along tiles in the workspace has places for 12, so that it moves in vectors, whichever of x and
// y has its channels inside.
TEST(Rules, OfWinogradsWorkspaceKeepVectorsInMixedLayouts) {
  for (const auto& [x, y] : {std::pair{"nhwc", "nchw"}, std::pair{"nchw", "nhwc"}, std::pair{"nchw", "nchw"}}) {
    const Request request =
        Request::parse(fmt::format("conv_forward x=f32:1x8x6x6:{} w=f32:8x8x3x3 y=f32:1x8x6x6:{} pad=1 fast", x, y));
    const BoundAlgorithm bound = catalogue().find("conv_winograd_2x2")->on(request, target());
    const Program program = bound.program(catalogue().library(), bound.first_legal().value());
    const std::string& products = program.sources.at(1).code;
    EXPECT_EQ(constant(products, "Y_RUN"), "4") << x << " to " << y;
    EXPECT_NE(constant(products, "X_RUN"), "1") << x << " to " << y;
  }
}

}  // namespace
}  // namespace kiln::rules_test
