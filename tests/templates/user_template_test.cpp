// The example of a user template on the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/templates/catalogue.h"
#include "variant_check.h"

namespace kiln {
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
  const std::vector<Config> legal = conv_stem().space().legal(request, TestDevice::get().target);
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
  const auto reason = [&](const char* line) { return conv_stem().refusal(Request::parse(line), target).value_or(""); };
  EXPECT_THAT(reason("conv_forward x=f32:1x3x9x9:nhwc w=f32:16x3x3x3"), HasSubstr("x must be packed nchw"));
  EXPECT_THAT(reason("conv_forward x=f32:1x8x9x9 w=f32:16x8x3x3 y=f32:1x16x7x7:nhwc"),
              HasSubstr("more than 4 channels"));
  EXPECT_THAT(reason("pool_forward x=f32:1x3x9x9 window=2"), HasSubstr("serves conv_forward"));
}

TEST(UserTemplate, RulesPruneItsPoints) {
  const Request request = Request::parse("conv_forward x=f32:1x3x9x9 w=f32:20x3x3x3 y=f32:1x20x7x7:nhwc");
  EXPECT_EQ(conv_stem().space().refusal(Config::parse("THREADS=64,TILE_K=8"), request, TestDevice::get().target),
            "TILE_K divides the channels (THREADS=64,TILE_K=8)");
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

}  // namespace
}  // namespace kiln
