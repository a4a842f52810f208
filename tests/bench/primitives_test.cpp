// Declared passes and counted sectors: what bench_primitives is made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "passes.h"
#include "traffic.h"

namespace kiln::bench {
namespace {

using testing::HasSubstr;

TEST(TableOfPasses, HoldsForTheRequestsThatFollowInF32AndInF16) {
  const auto rows = parse_passes(
      "# a comment\n"
      "x*2 y: two passes over x\n"
      "  softmax_forward x=f32:4x10\n"
      "\n"
      "x y workspace*2: partial results\n"
      "  reduce x=f32:6x10 axes=1 mode=add  # of rows");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].request.key(), Request::parse("softmax_forward x=f32:4x10").key());
  EXPECT_EQ(rows[1].request.key(), Request::parse("softmax_forward x=f16:4x10").key());
  EXPECT_EQ(rows[1].reason, "two passes over x");
  EXPECT_EQ(rows[3].reason, "partial results");
  EXPECT_EQ(declared_bytes(rows[0], 1000), 3 * 160);
  EXPECT_EQ(declared_bytes(rows[1], 1000), 3 * 80);
  EXPECT_EQ(declared_bytes(rows[2], 1000), 240 + 24 + 2 * 1000);
}

TEST(TableOfPasses, LeavesOperandsF32ThatAreAlwaysF32) {
  const auto rows =
      parse_passes("dy x dx mean inv_deviation: why\n  norm_backward dy=f32:4x10 x=f32:4x10 mean=f32:4x1\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].request.find("x")->dtype, DType::f16);
  EXPECT_EQ(rows[1].request.find("mean")->dtype, DType::f32);
}

TEST(TableOfPasses, NamesTheLineThatCannotBeRead) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"\n  softmax_forward x=f32:4x10\n", "line 2 of the table of passes: a request before any passes"},
           Case{"x y\n", "line 1 of the table of passes: passes are followed by a colon and the reason"},
           Case{"x y: \n", "line 1 of the table of passes: these passes have no reason"},
           Case{"x*two y: why\n", "line 1 of the table of passes: 'x*two' where NAME or NAME*COUNT is expected"},
           Case{"x*-1 y: why\n", "line 1 of the table of passes: 'x*-1' where NAME or NAME*COUNT is expected"},
           Case{"x: why\n  softmax_forward x=f32:4x10\n",
                "line 2 of the table of passes: no passes are declared for y"},
           Case{"x y z: why\n  softmax_forward x=f32:4x10\n",
                "line 2 of the table of passes: the request has no operand z"},
       }) {
    try {
      parse_passes(c.text);
      ADD_FAILURE() << "accepted " << c.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::parse_error);
      EXPECT_THAT(error.what(), HasSubstr(c.message));
    }
  }
}

TEST(TableOfPasses, AllowsGradientsMore) {
  EXPECT_EQ(traffic_limit(Request::parse("softmax_forward x=f32:4x10")), 1.1);
  EXPECT_EQ(traffic_limit(Request::parse("tensor_set y=f32:4x10")), 1.1);
  EXPECT_EQ(traffic_limit(Request::parse("softmax_backward y=f32:4x10")), 1.25);
  EXPECT_EQ(traffic_limit(Request::parse("conv_backward_bias dy=f32:4x10x5x5")), 1.25);
}

TEST(TableOfPasses, TheCommittedOneCanBeRead) {
  std::ifstream stream(KILN_BENCH_PASSES, std::ios::binary);
  ASSERT_TRUE(stream);
  EXPECT_GT(parse_passes(std::string((std::istreambuf_iterator<char>(stream)), {})).size(), 100u);
}

// One for all tests: it decides how the emulator of this process counts.
const TrafficMeter& meter() {
  static const TrafficMeter the_meter(KILN_EMULATOR, {Environment::read().nvrtc});
  return the_meter;
}

TEST(Traffic, IsOneReadAndOneWriteOfAnElementwiseOperation) {
  // More blocks than the emulator records unless it is told to.
  const Traffic traffic = meter().measure(Request::parse("activation_forward x=f32:8x64x56x28 mode=relu"));
  EXPECT_EQ(traffic.launches, 1u);
  EXPECT_EQ(traffic.workspace_bytes, 0);
  EXPECT_EQ(traffic.unique_bytes, 2.0 * 8 * 64 * 56 * 28 * 4);
  EXPECT_EQ(traffic.requested_bytes, traffic.unique_bytes);
}

TEST(Traffic, CountsWhatIsReadAgainAsRequestedOnly) {
  const Traffic traffic = meter().measure(Request::parse("pool_forward x=f32:2x3x24x24:nhwc window=3 pad=1 mode=max"));
  EXPECT_EQ(traffic.unique_bytes, 2.0 * 2 * 3 * 24 * 24 * 4);
  EXPECT_GT(traffic.requested_bytes, 1.2 * traffic.unique_bytes);
}

TEST(Traffic, IsSummedOverLaunchesWithThePartialResultsBetweenThem) {
  const Request request = Request::parse("reduce x=f32:2048x96 axes=0 mode=add");
  const Traffic traffic = meter().measure(request);
  ASSERT_EQ(traffic.launches, 2u) << traffic.algorithm;
  ASSERT_GT(traffic.workspace_bytes, 0);
  EXPECT_EQ(traffic.unique_bytes, 2048 * 96 * 4 + 96 * 4 + 2.0 * static_cast<double>(traffic.workspace_bytes));
}

TEST(Traffic, ShowsSectorsOfWhichLittleIsUsed) {
  const Traffic traffic = meter().measure(Request::parse("tensor_transform x=f32:64x64:512,8 y=f32:64x64"));
  EXPECT_EQ(traffic.unique_bytes, 64 * 64 * (32 + 4));
}

}  // namespace
}  // namespace kiln::bench
