// Filters of few elements: their numbers fit a byte, and compilers divide numbers that do in narrower arithmetic. NVRTC
// 13.0 once got that wrong (lib/im2col_pixels.cuh), so every place that takes such a number apart is run here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"
#include "kiln/templates/catalogue.h"
#include "variant_check.h"

namespace kiln::testing_support::conv_taps_test {
namespace {

struct Window {
  int64_t r, s;
};

class FewTaps : public testing::TestWithParam<Window> {
 protected:
  // Filters whose rows and channels lie apart, so that an element's number has to be divided to find it.
  std::string filter(int64_t k, int64_t c) const {
    const auto [r, s] = GetParam();
    const int64_t row = s + 2, channel = row * r + 3;
    return fmt::format("w=f16:{}x{}x{}x{}:{},{},{},1", k, c, r, s, channel * c + 1, channel, row);
  }

  // Every algorithm that serves the request, in its default configuration. At least the simple one and `others` more.
  static void expect_all_match(const std::string& line, int others) {
    const Request request = Request::parse(line);
    VariantChecker checker(built_in_catalogue(), request);
    int served = 0;
    for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
      const auto config = algorithm.on(request, TestDevice::get().target).first_legal();
      if (!config) continue;
      ++served;
      EXPECT_TRUE(checker.matches_reference({algorithm.name(), *config}));
    }
    EXPECT_GT(served, others) << line;
  }
};

TEST_P(FewTaps, OfDepthwiseFiltersAlongTheChannels) {
  for (const char* batch : {"", " n=?"}) {
    expect_all_match("conv_forward x=f16:2x8x8x9:nhwc " + filter(8, 1) + " groups=8 pad=1" + batch, 2);
  }
}

TEST_P(FewTaps, OfFiltersAlongTheChannels) {
  for (const char* batch : {"", " n=?"}) {
    expect_all_match("conv_forward x=f16:2x3x8x9:nhwc " + filter(6, 3) + " pad=1" + batch, 2);
  }
}

TEST_P(FewTaps, OfFiltersAlongThePixels) {
  for (const char* batch : {"", " n=?"}) {
    expect_all_match("conv_forward x=f16:2x2x8x9:nchw " + filter(6, 2) + " pad=1" + batch, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, FewTaps, testing::Values(Window{2, 2}, Window{3, 3}, Window{5, 3}, Window{1, 7}),
                         [](const auto& window) { return fmt::format("{}x{}", window.param.r, window.param.s); });

}  // namespace
}  // namespace kiln::testing_support::conv_taps_test
