// Declared passes and counted sectors: what bench_primitives is made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "declared_passes.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "traffic.h"

namespace kiln::bench::primitives_test {
namespace {

using testing::HasSubstr;

TEST(TableOfPasses, HoldsForTheRequestsThatFollowInF32AndInF16) {
  const auto rows = parse_passes(
      "# a comment\n"
      "x*2 y: two passes over x\n"
      "  softmax_forward x=f32:4x10\n"
      "\n"
      "x y f32(y)*8: partial results\n"
      "  reduce x=f32:6x10 axes=1 mode=add  # of rows\n"
      "  only reduce x=f32:6x10 axes=0 mode=add\n"
      "  reduce x=f16:6x10 axes=0 mode=add");
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].request.key(), Request::parse("softmax_forward x=f32:4x10").key());
  EXPECT_EQ(rows[1].request.key(), Request::parse("softmax_forward x=f16:4x10").key());
  EXPECT_EQ(rows[1].reason, "two passes over x");
  EXPECT_EQ(rows[3].reason, "partial results");
  EXPECT_EQ(rows[4].request.key(), Request::parse("reduce x=f32:6x10 axes=0 mode=add").key()) << "no second one";
  EXPECT_EQ(rows[5].request.key(), Request::parse("reduce x=f16:6x10 axes=0 mode=add").key());
  EXPECT_EQ(declared_bytes(rows[0]), 3 * 160);
  EXPECT_EQ(declared_bytes(rows[1]), 3 * 80);
  EXPECT_EQ(declared_partials(rows[1]), 0);
  EXPECT_EQ(declared_bytes(rows[2]), 240 + 24 + 8 * 24);
  EXPECT_EQ(declared_bytes(rows[3]), 120 + 12 + 8 * 24) << "partial results are f32 of whatever";
  EXPECT_EQ(declared_partials(rows[3]), 8 * 24);
}

TEST(TableOfPasses, TakesPartsOfAPass) {
  const auto rows = parse_passes("x*0.25 y f32(x)*1.5: every fourth\n  only softmax_forward x=f32:4x10\n");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(declared_bytes(rows[0]), 40 + 160 + 240);
}

TEST(TableOfPasses, TakesUserCode) {
  const auto rows = parse_passes(
      "expression twice(gate)\n"
      "acc * 2.0f * gate\n"
      "end expression\n"
      "x epilogue.gate y: one launch\n"
      "  activation_forward x=f32:4x10 mode=identity epilogue=user:twice epilogue.gate=f32:4x10\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].request.user_code.expression()->tensors(), std::vector<std::string>{"gate"});
  EXPECT_EQ(declared_bytes(rows[1]), 3 * 80);
}

TEST(TableOfPasses, LooksAtOneOfEachOperationUnderEachDeclarationByTurns) {
  const auto rows =
      quick_rows(parse_passes("x y: one\n"
                              "  softmax_forward x=f32:4x10\n"
                              "  softmax_forward x=f32:5x10\n"
                              "  activation_forward x=f32:4x10 mode=relu\n"
                              "  activation_forward x=f32:5x10 mode=relu\n"
                              "x*2 y: another\n"
                              "  softmax_forward x=f32:6x10\n"
                              "  only activation_forward x=f32:6x10 mode=relu\n"
                              "  softmax_forward x=f32:7x10\n"));
  std::vector<std::string> found;
  for (const DeclaredRow& row : rows) found.push_back(row.request.key());
  std::vector<std::string> expected;
  for (const char* line : {"softmax_forward x=f32:4x10", "activation_forward x=f16:4x10 mode=relu",
                           "softmax_forward x=f32:6x10", "activation_forward x=f32:6x10 mode=relu"}) {
    expected.push_back(Request::parse(line).key());
  }
  EXPECT_EQ(found, expected);
}

TEST(TableOfPasses, SaysWhatIsWrongWithARow) {
  const auto rows =
      parse_passes("x y: why\n  softmax_forward x=f32:4x100\ny dy dx: why\n  softmax_backward y=f32:4x100");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(fault_of(rows[0], 3200, 3200), "");
  EXPECT_EQ(fault_of(rows[0], 3520, 3520), "");
  EXPECT_EQ(fault_of(rows[0], 3552, 3552), "1.110 of 1.10: " + rows[0].request.key());
  EXPECT_EQ(fault_of(rows[1], 1792, 1792), "1.120 of 1.10: " + rows[1].request.key());
  EXPECT_EQ(fault_of(rows[0], 3008, 3008), "0.940, more is declared than is moved: " + rows[0].request.key());
  EXPECT_EQ(fault_of(rows[2], 6000, 6000), "");
  EXPECT_EQ(fault_of(rows[2], 6048, 6048), "1.260 of 1.25: " + rows[2].request.key());
}

TEST(TableOfPasses, LimitsWhatWarpsAskFor) {
  const auto rows =
      parse_passes("x y: why\n  softmax_forward x=f32:4x100\nx y requested<=5.5: why\n  softmax_forward x=f32:4x100");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(fault_of(rows[0], 3200, 7040), "");
  EXPECT_EQ(fault_of(rows[0], 3200, 7200), "requested 2.25 of 2.20: " + rows[0].request.key());
  EXPECT_EQ(fault_of(rows[3], 1600, 8800), "");
  EXPECT_EQ(fault_of(rows[3], 1600, 8960), "requested 5.60 of 5.50: " + rows[3].request.key());
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
           Case{"x*two y: why\n",
                "line 1 of the table of passes: 'x*two' where NAME, NAME*COUNT or f32(NAME)*COUNT is expected"},
           Case{"x requested<=: why\n",
                "line 1 of the table of passes: 'requested<=' where requested<=COUNT is expected"},
           Case{"x*-1 y: why\n",
                "line 1 of the table of passes: 'x*-1' where NAME, NAME*COUNT or f32(NAME)*COUNT is expected"},
           Case{"x f32(): why\n",
                "line 1 of the table of passes: 'f32()' where NAME, NAME*COUNT or f32(NAME)*COUNT is expected"},
           Case{"x f32(y): why\n  softmax_forward x=f32:4x10\n",
                "line 2 of the table of passes: no passes are declared for y"},
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
}  // namespace kiln::bench::primitives_test
