// Inferences of each operation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/attention.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/cross_entropy.h"
#include "kiln/generator/operations/winograd.h"
#include "kiln/generator/run_values.h"
#include "kiln/generator/scalar_rules.h"
#include "request_suites.h"

namespace kiln::operations_test {
namespace {

using testing::ElementsAre;

std::vector<int64_t> y_of(const std::string& line) {
  return Request::parse(line).at("y").extents;
}

TEST(TensorOp, InfersTheLongestExtents) {
  EXPECT_THAT(y_of("tensor_op a=f32:2x1x4 b=f32:1x3x1 mode=add"), ElementsAre(2, 3, 4));
  EXPECT_EQ(Request::parse("tensor_op a=u8:1x8x1x1 b=f32:2x8x3x4:nhwc mode=mul").at("y").print(), "u8:2x8x3x4:nhwc");
}

TEST(ConvForward, InfersTheOutput) {
  EXPECT_THAT(y_of("conv_forward x=f32:1x3x224x224 w=f32:64x3x7x7 pad=3 stride=2"), ElementsAre(1, 64, 112, 112));
  EXPECT_THAT(y_of("conv_forward x=f32:2x3x9x11 w=f32:4x3x3x3 pad=1,2,3,4 stride=2,3 dilation=2,1"),
              ElementsAre(2, 4, 5, 5));
  EXPECT_THAT(y_of("conv_forward x=f32:0x3x9x9 w=f32:4x3x3x3"), ElementsAre(0, 4, 7, 7));
}

TEST(Products, OfIntegersHaveResultsThatHoldTheirSums) {
  const auto result_of_gemm = [](const std::string& a, const std::string& b) {
    return Request::parse("gemm a=" + a + ":3x5 b=" + b + ":5x7 epilogue=bias").at("c").print();
  };
  EXPECT_EQ(result_of_gemm("i8", "u8"), "i32:3x7:nc");
  EXPECT_EQ(result_of_gemm("u8", "bf16"), "bf16:3x7:nc");
  EXPECT_EQ(result_of_gemm("f16", "i8"), "f16:3x7:nc");
  EXPECT_EQ(result_of_gemm("f8e5m2", "i8"), "f8e5m2:3x7:nc");
  const Request conv = Request::parse("conv_forward x=u8:1x4x8x8:nhwc w=i8:4x4x3x3:nhwc epilogue=bias+add");
  EXPECT_EQ(conv.at("y").print(), "i32:1x4x6x6:nhwc");
  EXPECT_EQ(conv.at("bias").print(), "i32:4:n");
  EXPECT_EQ(conv.at("residual").print(), "i32:1x4x6x6:nhwc");
}

TEST(Operands, AreReadAndWrittenAsTheirRolesAndBetaSay) {
  const std::string line = "conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 epilogue=bias";
  const Request plain = Request::parse(line), blended = Request::parse(line + " beta=any");
  EXPECT_EQ(result_of(plain).name, "y");
  for (const char* input : {"x", "w", "bias"}) {
    EXPECT_TRUE(is_read(plain, input)) << input;
    EXPECT_FALSE(is_written(plain, input)) << input;
  }
  EXPECT_TRUE(is_written(plain, "y"));
  EXPECT_FALSE(is_read(plain, "y"));
  const Request sums = Request::parse("norm_backward dy=f32:3x5 dw=f32:1x5 db=f32:1x5 parameter_beta=1");
  EXPECT_TRUE(is_read(sums, "dw"));
  EXPECT_TRUE(is_read(sums, "db"));
  EXPECT_FALSE(is_read(sums, "dx"));
  EXPECT_FALSE(is_read(Request::parse("norm_backward dy=f32:3x5 dw=f32:1x5"), "dw"));
  EXPECT_TRUE(is_read(blended, "y"));
}

TEST(ConvBackwardData, InfersTheInputOfTheConvolution) {
  const auto dx_of = [](const std::string& line) {
    return Request::parse("conv_backward_data " + line).at("dx").extents;
  };
  EXPECT_THAT(dx_of("dy=f32:2x4x6x5 w=f32:4x3x3x2 pad=1,0"), ElementsAre(2, 3, 6, 6));
  EXPECT_THAT(dx_of("dy=f32:1x64x112x112 w=f32:64x3x7x7 pad=3 stride=2"), ElementsAre(1, 3, 223, 223));
  EXPECT_THAT(dx_of("dy=f32:1x64x112x112 w=f32:64x3x7x7 pad=3 stride=2 output_pad=1"), ElementsAre(1, 3, 224, 224));
  EXPECT_THAT(dx_of("dy=f32:1x6x5 w=f32:6x2x3 groups=3 stride=3 dilation=2 output_pad=2"), ElementsAre(1, 6, 19));
}

TEST(ConvBackwardData, DropsTheOutputPadFromTheKey) {
  const std::string key =
      Request::parse("conv_backward_data dy=f16:1x8x4x4:nhwc w=f16:8x4x3x3 stride=2 output_pad=1").key();
  EXPECT_EQ(key,
            "conv_backward_data dy=f16:1x8x4x4:nhwc w=f16:8x4x3x3:nchw dx=f16:1x4x10x10:nhwc pad=0,0,0,0 stride=2,2 "
            "dilation=1,1 groups=1 acc=f32");
  EXPECT_EQ(Request::parse(key).key(), key);
}

TEST(ConvBackward, CountsTheLeastWork) {
  const Request data = Request::parse("conv_backward_data dy=f16:1x3x4x4 w=f16:3x2x3x3 pad=1 beta=1");
  EXPECT_EQ(operation("conv_backward_data").work(data).flops, 2.0 * 3 * 16 * 18);
  EXPECT_EQ(operation("conv_backward_data").work(data).read_bytes, 2.0 * (48 + 54 + 32));
  EXPECT_EQ(operation("conv_backward_data").work(data).write_bytes, 2.0 * 32);
  const Request filter = Request::parse("conv_backward_filter x=f16:1x2x4x4 dy=f16:1x3x4x4 dw=f32:3x2x3x3 pad=1");
  EXPECT_EQ(operation("conv_backward_filter").work(filter).flops, 2.0 * 3 * 16 * 18);
  EXPECT_EQ(operation("conv_backward_filter").work(filter).read_bytes, 2.0 * (32 + 48));
  EXPECT_EQ(operation("conv_backward_filter").work(filter).write_bytes, 4.0 * 54);
  EXPECT_EQ(operation("conv_backward_bias").work(Request::parse("conv_backward_bias dy=f32:2x3x5")).flops, 30.0);
}

TEST(LocalConv, HasARegionForEachOutputUnlessTheGridSaysOtherwise) {
  EXPECT_EQ(Request::parse("local_conv_forward x=f32:2x3x8x9 w=f32:45x3x3x3 stride=3,2 pad=1").key(),
            "local_conv_forward x=f32:2x3x8x9:nchw w=f32:45x3x3x3:nchw y=f32:2x3x3x5:nchw pad=1,1,1,1 stride=3,2 "
            "dilation=1,1 groups=1 grid=3,5 acc=f32");
  EXPECT_THAT(y_of("local_conv_forward x=f16:2x3x8x9:nhwc w=f16:8x3x3x3 grid=2,1"), ElementsAre(2, 4, 6, 7));
  EXPECT_THAT(y_of("local_conv_forward x=f32:2x3x8 w=f32:8x3x3 grid=4"), ElementsAre(2, 2, 6));
  EXPECT_THAT(Request::parse("local_conv_backward_data dy=f32:1x2x3x4x5 w=f32:120x3x2x2x2 grid=0").ints("grid"),
              ElementsAre(3, 4, 5));
  EXPECT_THAT(Request::parse("local_conv_backward_filter x=f32:1x2x5 dy=f32:1x3x4 dw=f32:12x2x2").ints("grid"),
              ElementsAre(4));
}

TEST(LocalConv, TakesADimensionOfWForTheRegions) {
  const std::string line =
      "local_conv_forward x=f32:2x3x8x9:nchw w=f32:15x4x3x3x3:108,1,4,36,12 y=f32:2x4x3x5:nchw pad=1,1,1,1 stride=3,2 "
      "dilation=1,1 groups=1 grid=3,5 acc=f32";
  const Request forward =
      Request::parse("local_conv_forward x=f32:2x3x8x9 w=f32:15x4x3x3x3:108,1,4,36,12 stride=3,2 pad=1");
  EXPECT_EQ(forward.key(), Request::parse(line).key());
  EXPECT_THAT(forward.at("y").extents, ElementsAre(2, 4, 3, 5));
  EXPECT_EQ(ConvForward::of(forward).request(), forward);
  EXPECT_EQ(operation("local_conv_forward").work(forward).flops, 2.0 * 2 * 4 * 15 * 27);
  const Request data = Request::parse("local_conv_backward_data dy=f32:1x2x3x4x5 w=f32:60x2x3x2x2x2:24,3,1,5,7,2000");
  EXPECT_THAT(data.at("dx").extents, ElementsAre(1, 3, 4, 5, 6));
  EXPECT_EQ(Request::parse(data.key()), data);
  EXPECT_EQ(ConvBackwardData::of(data).request(), data);
  const Request filter =
      Request::parse("local_conv_backward_filter x=f32:1x2x5 dy=f32:1x3x4 dw=f32:2x3x2x2:hwcn grid=2");
  EXPECT_EQ(Request::parse(filter.key()), filter);
  EXPECT_EQ(ConvBackwardFilter::of(filter).request(), filter);
}

TEST(LocalConv, DividesOutputsAsEvenlyAsItGoes) {
  const RegionAxis axis{.outputs = 7, .regions = 3};
  std::vector<int64_t> regions, firsts;
  for (int64_t output = 0; output < 7; ++output) regions.push_back(axis.region_of(output));
  for (int64_t region = 0; region <= 3; ++region) firsts.push_back(axis.first(region));
  EXPECT_THAT(regions, ElementsAre(0, 0, 0, 1, 1, 2, 2));
  EXPECT_THAT(firsts, ElementsAre(0, 3, 5, 7));
  EXPECT_EQ(axis.longest(), 3);
}

TEST(LocalConv, CountsTheLeastWork) {
  const Request forward = Request::parse("local_conv_forward x=f16:2x3x4x4 w=f16:20x3x3x3 pad=1 grid=2");
  EXPECT_EQ(operation("local_conv_forward").work(forward).flops, 2.0 * 2 * 5 * 16 * 27);
  EXPECT_EQ(operation("local_conv_forward").work(forward).read_bytes, 2.0 * (2 * 48 + 20 * 27));
}

// Whoever has the printed line knows which addresses a run takes. Only what the stages of an epilogue add stands in the
// name of the stage alone.
TEST(Operations, PrintEveryOperandThatTheyInfer) {
  for (const Request& request : testing_support::all_requests()) {
    for (const Operand& operand : request.operands) {
      if (operand.name == "bias" || operand.name == "residual") continue;
      EXPECT_THAT(request.key(), testing::HasSubstr(" " + operand.name + "=")) << request.key();
    }
  }
}

TEST(CrossEntropy, SaysWhetherItWeighsAndSmooths) {
  const Request request = Request::parse("cross_entropy_forward smoothing=any weights=f32:4 x=f16:3x4");
  EXPECT_EQ(
      request.key(),
      "cross_entropy_forward x=f16:3x4:nc targets=i32:3:n weights=f32:4:n loss=f32:1:n reduction=mean ignore=-100 "
      "smoothing=any");
  EXPECT_EQ(CrossEntropyForward::of(request).request(), request);
  const char* const plain = "cross_entropy_forward x=f16:3x4";
  EXPECT_EQ(Request::parse(std::string(plain) + " smoothing=none"), Request::parse(plain));
}

TEST(CrossEntropy, InfersWhatTheReductionAsksFor) {
  const Request mean = Request::parse("cross_entropy_forward x=f16:3x4x5");
  EXPECT_EQ(mean.key(),
            "cross_entropy_forward x=f16:3x4x5:ncw targets=i32:3x5:nc loss=f32:1:n reduction=mean ignore=-100");
  EXPECT_EQ(mean.at("loss").print(), "f32:1:n");
  const Request none = Request::parse("cross_entropy_forward x=f16:3x4 reduction=none ignore=9");
  EXPECT_EQ(none.key(), "cross_entropy_forward x=f16:3x4:nc targets=i32:3:n losses=f32:3:n reduction=none ignore=9");
  EXPECT_EQ(none.at("losses").print(), "f32:3:n");
  EXPECT_EQ(Request::parse("cross_entropy_backward x=f16:3x4x2x2:nhwc").key(),
            "cross_entropy_backward x=f16:3x4x2x2:nhwc targets=i32:3x2x2:ncw dx=f16:3x4x2x2:nhwc reduction=mean "
            "ignore=-100");
}

TEST(NormAffine, InfersScaleAndShiftFromItsParameters) {
  const auto pair = [](const std::string& line) {
    const Request request = Request::parse("norm_affine " + line);
    return request.at("scale").print() + " " + request.at("shift").print();
  };
  EXPECT_EQ(pair("x=f16:2x3x4x5 axes=2,3"), "f32:2x3x1x1:nchw f32:2x3x1x1:nchw");
  EXPECT_EQ(pair("x=f16:2x3x4x5:nhwc w=f16:1x3x1x1 axes=1,2,3"), "f32:2x3x1x1:nchw f32:2x3x1x1:nchw");
  EXPECT_EQ(pair("x=f16:2x3x4x5 w=f16:1x3x1x1 b=f16:1x1x4x1 axes=1,2,3"), "f32:2x3x4x1:nchw f32:2x3x4x1:nchw");
  EXPECT_EQ(pair("x=f32:2x3x4 w=f32:2x3x1 axes=0,2"), "f32:2x3x1:ncw f32:2x3x1:ncw");
  EXPECT_EQ(pair("x=f32:2x3 scale=f32:2x3:1,2"), "f32:2x3:cn f32:2x3:nc") << "more than w and b ask for";
  EXPECT_EQ(pair("x=f32:3x0 b=f32:1x1"), "f32:3x1:nc f32:3x1:nc");
}

TEST(Gemm, InfersItsResultFromBothFactors) {
  const Request request = Request::parse("gemm a=f16:2x1x3x4 b=f32:1x5x4x6 epilogue=bias+add");
  EXPECT_THAT(request.at("c").extents, ElementsAre(2, 5, 3, 6));
  EXPECT_EQ(request.at("c").dtype, DType::f16);
  EXPECT_THAT(request.at("bias").extents, ElementsAre(6));
  EXPECT_THAT(request.at("residual").extents, ElementsAre(2, 5, 3, 6));
  EXPECT_EQ(operation("gemm").work(request).flops, 2.0 * 2 * 5 * 3 * 6 * 4);
}

TEST(UnpoolBackward, CountsTheLeastWork) {
  const Request request = Request::parse("unpool_backward dy=f16:1x2x4x4 indices=i32:1x2x2x2 window=2 stride=2 beta=1");
  const Work work = operation("unpool_backward").work(request);
  EXPECT_EQ(work.read_bytes, 2.0 * 8 + 4.0 * 8 + 2.0 * 8) << "what is named of dy, the indices, and dx";
  EXPECT_EQ(work.write_bytes, 2.0 * 8);
}

TEST(Recurrent, CountsTheLeastWork) {
  const Request layer = Request::parse(
      "recurrent_forward gates=f16:3x5x2x16 r=f16:2x16x4 h0=f32:3x2x4 hn=f32:3x2x4 cell=lstm direction=both");
  const Work forward = operation("recurrent_forward").work(layer);
  EXPECT_EQ(forward.flops, 2.0 * 3 * 5 * 2 * 16 * 4);
  EXPECT_EQ(forward.read_bytes, 2.0 * (3 * 5 * 2 * 16 + 2 * 16 * 4) + 4.0 * 3 * 2 * 4);
  EXPECT_EQ(forward.write_bytes, 2.0 * 3 * 5 * 2 * 4 + 4.0 * 3 * 2 * 4);
  const Request gradient =
      Request::parse("recurrent_backward dy=f32:3x5x1x4 r=f32:1x4x4 saved=f32:3x5x1x4 cell=tanh beta=1");
  const Work backward = operation("recurrent_backward").work(gradient);
  EXPECT_EQ(backward.flops, 2.0 * 3 * 5 * 4 * 4);
  EXPECT_EQ(backward.read_bytes, 4.0 * (60 + 16 + 60 + 60)) << "dgates too, which it adds to";
  EXPECT_EQ(backward.write_bytes, 4.0 * 60);
}

TEST(Scatter, CountsItsAxisFromTheEnd) {
  EXPECT_EQ(Request::parse("scatter updates=f32:2x6 indices=i32:1x6 y=f32:2x4 axis=-1").ints("axis").front(), 1);
}

TEST(Scatter, CountsTheLeastWork) {
  const Work work =
      operation("scatter").work(Request::parse("scatter updates=f16:6x3 indices=i32:6x1 y=f32:4x3 beta=1"));
  EXPECT_EQ(work.flops, 18);
  EXPECT_EQ(work.read_bytes, 2.0 * 18 + 4.0 * 6 + 4.0 * 12) << "y too";
  EXPECT_EQ(work.write_bytes, 4.0 * 12);
}

TEST(GridSample, InfersItsResults) {
  const auto of = [](const std::string& request, std::string_view operand) {
    return Request::parse(request).at(operand).print();
  };
  EXPECT_EQ(of("grid_sample x=f16:2x24x5x7:nhwc grid=f32:2x4x6x2", "y"), "f16:2x24x4x6:nhwc");
  EXPECT_EQ(of("grid_sample x=f32:2x3x4x5x7 grid=f32:2x6x8x9x3", "y"), "f32:2x3x6x8x9:ncdhw");
  EXPECT_EQ(of("grid_sample_backward_grid dy=f16:2x3x4x6 x=f16:2x3x5x7 grid=f32:2x4x6x2", "dgrid"), "f32:2x4x6x2:nchw");
  EXPECT_EQ(of("affine_grid_backward dgrid=f16:2x4x6x2", "dtheta"), "f16:2x2x3:ncw");
}

TEST(GridSample, CountsTheLeastWork) {
  const auto work = [](const std::string& request) {
    const Request parsed = Request::parse(request);
    return operation(parsed.operation).work(parsed);
  };
  const Work forward = work("grid_sample x=f16:2x3x5x7 grid=f32:2x4x6x2 beta=1");
  EXPECT_EQ(forward.flops, 2.0 * 4 * (2 * 3 * 4 * 6));
  EXPECT_EQ(forward.read_bytes, 2.0 * 2 * 3 * 5 * 7 + 4.0 * 2 * 4 * 6 * 2 + 2.0 * 2 * 3 * 4 * 6) << "y too";
  EXPECT_EQ(forward.write_bytes, 2.0 * 2 * 3 * 4 * 6);
  EXPECT_EQ(work("grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2 mode=cubic").flops, 2.0 * 16 * (2 * 3 * 4 * 6));
  EXPECT_EQ(work("grid_sample x=f32:1x3x2x5x7 grid=f32:1x2x4x6x3").flops, 2.0 * 8 * (3 * 2 * 4 * 6));
  EXPECT_EQ(work("grid_sample x=f32:1x3x2x5x7 grid=f32:1x2x4x6x3 mode=nearest").flops, 2.0 * (3 * 2 * 4 * 6));
  const Work map = work("affine_grid theta=f32:2x3x4 grid=f32:2x4x5x6x3");
  EXPECT_EQ(map.flops, 2.0 * 4 * (2 * 4 * 5 * 6 * 3));
  EXPECT_EQ(map.write_bytes, 4.0 * (2 * 4 * 5 * 6 * 3));
}

TEST(Im2col, InfersItsColumns) {
  const auto of = [](const std::string& request) { return Request::parse(request).at("y").print(); };
  EXPECT_EQ(of("im2col x=f16:2x24x5x7:nhwc window=3 pad=1"), "f16:2x216x5x7:nhwc");
  EXPECT_EQ(of("im2col x=f32:2x3x4x5x7 window=global"), "f32:2x420x1x1x1:ncdhw");
  EXPECT_EQ(of("im2col x=f32:2x3x9:90,20,2 window=2 pad=1,2 stride=3 dilation=2"), "f32:2x6x4:ncw");
}

TEST(Im2col, CountsTheLeastWork) {
  const auto work = [](const std::string& request) {
    const Request parsed = Request::parse(request);
    return operation(parsed.operation).work(parsed);
  };
  const Work forward = work("im2col x=f16:2x3x5x7 y=f32:2x27x5x7 window=3 pad=1 beta=1");
  EXPECT_EQ(forward.flops, 0);
  EXPECT_EQ(forward.read_bytes, 2.0 * 2 * 3 * 5 * 7 + 4.0 * 2 * 27 * 5 * 7) << "y too";
  EXPECT_EQ(forward.write_bytes, 4.0 * 2 * 27 * 5 * 7);
  EXPECT_EQ(work("im2col x=f32:2x3x6x6 window=1 stride=3").read_bytes, 4.0 * 2 * 3 * 2 * 2)
      << "the others are not read";
  const Work backward = work("col2im x=f16:2x27x5x7 y=f32:2x3x5x7 window=3 pad=1");
  EXPECT_EQ(backward.flops, 2.0 * 27 * 5 * 7);
  EXPECT_EQ(backward.read_bytes, 2.0 * 2 * 27 * 5 * 7);
  EXPECT_EQ(backward.write_bytes, 4.0 * 2 * 3 * 5 * 7);
}

TEST(CtcLoss, InfersItsResults) {
  EXPECT_EQ(Request::parse("ctc_loss_forward x=f16:4x9x5 targets=i32:4x3").at("loss").print(), "f32:4:n");
  EXPECT_EQ(Request::parse("ctc_loss_backward x=f16:4x9x5:5,20,1 targets=i32:4x3 prefixes=f32:4x9x7").at("dx").print(),
            "f16:4x9x5:cnw");
}

TEST(CtcLoss, CountsTheLeastWork) {
  const Work forward = operation("ctc_loss_forward")
                           .work(Request::parse("ctc_loss_forward x=f16:4x9x5 targets=i32:4x3 loss=f32:4 "
                                                "prefixes=f32:4x9x7 target_lengths=i32:4 beta=1"));
  EXPECT_EQ(forward.flops, 4.0 * 9 * (4 * 5 + 12 * 7));
  EXPECT_EQ(forward.read_bytes, 2.0 * 4 * 9 * 5 + 4.0 * (4 * 3 + 4 + 4)) << "loss too, which it adds to";
  EXPECT_EQ(forward.write_bytes, 4.0 * (4 + 4 * 9 * 7));
  const Work backward =
      operation("ctc_loss_backward")
          .work(Request::parse("ctc_loss_backward x=f16:4x9x5 targets=i32:4x3 dloss=f16:4 prefixes=f32:4x9x7"));
  EXPECT_EQ(backward.read_bytes, 2.0 * 4 * 9 * 5 + 4.0 * 4 * 3 + 2.0 * 4 + 4.0 * 4 * 9 * 7);
  EXPECT_EQ(backward.write_bytes, 2.0 * 4 * 9 * 5);
}

TEST(Attention, InfersItsResults) {
  EXPECT_EQ(Request::parse("attention_forward q=f16:2x4x5x8:160,8,32,1 k=f32:2x2x7x8 v=f32:2x2x7x6").at("y").print(),
            "f16:2x4x5x6:nchw");
  const Request gradient = Request::parse(
      "attention_backward dy=f32:2x4x5x6 q=bf16:2x4x5x8:160,8,32,1 k=f32:2x2x7x8 v=f32:2x2x7x6 y=f32:2x4x5x6 "
      "lse=f32:2x4x5");
  EXPECT_EQ(gradient.at("dq").print(), "bf16:2x4x5x8:nchw");
}

TEST(Attention, CountsTheLeastWork) {
  const Request layer = Request::parse(
      "attention_forward q=f16:2x4x5x8 k=f16:2x2x7x8 v=bf16:2x2x7x6 mask=u8:2x1x1x7 lse=f32:2x4x5 right=0 beta=1");
  const Work forward = operation("attention_forward").work(layer);
  EXPECT_EQ(forward.factors, DType::f16) << "of the products of queries and keys";
  EXPECT_EQ(forward.flops, 2.0 * 2 * 4 * (1 + 2 + 3 + 4 + 5) * (8 + 6));
  EXPECT_EQ(forward.read_bytes, 2.0 * 2 * (4 * 5 * 8 + 2 * 7 * 8 + 2 * 7 * 6 + 4 * 5 * 6) + 2 * 7) << "y too";
  EXPECT_EQ(forward.write_bytes, 2.0 * 2 * 4 * 5 * 6 + 4.0 * 2 * 4 * 5);
  const Request gradient = Request::parse(
      "attention_backward dy=f32:1x2x3x6 q=f32:1x2x3x8 k=f32:1x2x7x8 v=f32:1x2x7x6 y=f32:1x2x3x6 lse=f32:1x2x3 "
      "dk=f32:1x2x7x8");
  const Work backward = operation("attention_backward").work(gradient);
  EXPECT_EQ(backward.flops, 2.0 * 2 * 3 * 7 * (3 * 8 + 2 * 6));
  EXPECT_EQ(backward.read_bytes, 4.0 * 2 * (3 * 6 + 3 * 8 + 7 * 8 + 7 * 6 + 3 * 6 + 3));
  EXPECT_EQ(backward.write_bytes, 4.0 * 2 * (3 * 8 + 7 * 8));
}

// Pairs of a query and a key that it sees, counted one by one.
double counted_pairs(const Attention& attention) {
  const int64_t queries = attention.queries(), keys = attention.keys();
  const int64_t shift = attention.align == AttentionAlign::end ? keys - queries : 0;
  double count = 0;
  for (int64_t query = 0; query < queries; ++query) {
    for (int64_t key = 0; key < keys; ++key) {
      const int64_t distance = key - query - shift;  // of the key from the query's place
      const bool is_before = attention.left >= 0 && distance < -attention.left;
      const bool is_behind = attention.right >= 0 && distance > attention.right;
      if (!is_before && !is_behind) ++count;
    }
  }
  return count;
}

TEST(Attention, CountsThePairsThatAWindowHolds) {
  Attention attention;
  for (const AttentionAlign align : {AttentionAlign::start, AttentionAlign::end}) {
    for (int64_t shape = 0; shape < 49; ++shape) {
      attention.align = align;
      attention.q.extents = {1, 1, shape / 7, 1};
      attention.k.extents = {1, 1, shape % 7, 1};
      for (const int64_t left : {-1, 0, 2, 9}) {
        for (const int64_t right : {-1, 0, 1, 9}) {
          attention.left = left, attention.right = right;
          EXPECT_EQ(visible_pairs(attention), counted_pairs(attention))
              << shape / 7 << " queries, " << shape % 7 << " keys, left " << left << ", right " << right << ", "
              << to_string(align);
        }
      }
    }
  }
}

TEST(Winograd, TakesFiltersOf3x3Alone) {
  const auto refusal = [](const std::string& filter) {
    return winograd_refusal(Request::parse("conv_forward x=f32:1x2x8x8 w=f32:3x2x" + filter + " fast")).value_or("");
  };
  EXPECT_EQ(refusal("3x3"), "");
  for (const char* filter : {"5x3", "3x5", "1x3", "3x2"}) EXPECT_EQ(refusal(filter), "the filter is not 3x3") << filter;
}

TEST(ScalarRules, IncludeTheirBounds) {
  const ScalarRule rule{.scalar = 1, .least = 0, .most = 1, .hint = "", .floor = 0};
  const auto keeps = [&](float floor, float value) {
    RunValues values;
    values.operation_scalars[0] = floor;
    values.operation_scalars[1] = value;
    return is_kept(rule, values);
  };
  EXPECT_TRUE(keeps(0, 0));
  EXPECT_TRUE(keeps(0, 1));
  EXPECT_TRUE(keeps(0.5F, 0.5F));
  EXPECT_FALSE(keeps(0.5F, 0.25F)) << "below the floor";
  EXPECT_FALSE(keeps(-2, -0.5F));
  EXPECT_FALSE(keeps(0, 1.5F));
  EXPECT_FALSE(keeps(0, std::numeric_limits<float>::quiet_NaN()));
}

TEST(ConvForward, CountsTheLeastWork) {
  const Request request = Request::parse("conv_forward x=f16:1x2x4x4 w=f16:3x2x3x3 pad=1 epilogue=bias beta=1");
  const Work work = operation("conv_forward").work(request);
  EXPECT_EQ(work.flops, 2.0 * 3 * 16 * 18);
  EXPECT_EQ(work.read_bytes, 2.0 * (32 + 54 + 48 + 3));
  EXPECT_EQ(work.write_bytes, 2.0 * 48);
}

TEST(PoolForward, RoundsUpInCeilModeButDropsAWindowInThePadding) {
  EXPECT_THAT(y_of("pool_forward x=f32:1x1x8x8 mode=max window=3 stride=2"), ElementsAre(1, 1, 3, 3));
  EXPECT_THAT(y_of("pool_forward x=f32:1x1x8x8 mode=max window=3 stride=2 ceil=1"), ElementsAre(1, 1, 4, 4));
  // The third window would start at 4 = extent + pad_begin: wholly in the padding.
  EXPECT_THAT(y_of("pool_forward x=f32:1x1x3x3 mode=max window=2 stride=2 pad=1 ceil=1"), ElementsAre(1, 1, 2, 2));
}

TEST(PoolForward, DropsTheCeilSugarFromTheKey) {
  const std::string key = Request::parse("pool_forward x=f32:1x1x8x8 mode=max window=3 stride=2 ceil=1").key();
  EXPECT_EQ(key.find("ceil"), std::string::npos);
  EXPECT_EQ(Request::parse(key).key(), key);
}

// Which numbers a call may give: "name least..most", and which number is its floor.
std::string rules_of(const std::string& line) {
  const Request request = Request::parse(line);
  const Operation& definition = operation(request.operation);
  const auto& scalars = definition.scalars();
  std::string text;
  for (const ScalarRule& rule : definition.scalar_rules(request)) {
    text += fmt::format("{}{} {}..{}", text.empty() ? "" : ", ", scalars.at(rule.scalar).name, rule.least, rule.most);
    if (rule.floor) text += " from " + scalars.at(*rule.floor).name;
    EXPECT_FALSE(rule.hint.empty()) << line;
  }
  return text;
}

TEST(ScalarRules, SayWhatACallMayGive) {
  const auto forward = [](const std::string& mode) { return rules_of("activation_forward x=f32:3x4 mode=" + mode); };
  const std::string least = "1.1754944e-38", most = "3.4028235e+38", any = "-inf..inf";
  for (const char* mode : {"identity", "relu", "sigmoid", "tanh", "selu", "gelu", "gelu_tanh", "hard_swish", "mish"}) {
    EXPECT_EQ(forward(mode), "") << mode;
  }
  for (const char* mode : {"leaky_relu", "elu", "swish"}) EXPECT_EQ(forward(mode), "slope " + any) << mode;
  EXPECT_EQ(forward("softplus"), "slope " + least + ".." + most);
  EXPECT_EQ(forward("hard_sigmoid"), "slope " + any + ", offset " + any);
  EXPECT_EQ(forward("clipped_relu"), "high 0..inf");
  EXPECT_EQ(forward("clip"), "low " + any + ", high " + any + " from low");
  EXPECT_EQ(rules_of("activation_backward y=f32:3x4 dy=f32:3x4 mode=elu"), "slope 0.." + most);
  EXPECT_EQ(rules_of("activation_backward x=f32:3x4 dy=f32:3x4 mode=elu"), "slope " + any);

  EXPECT_EQ(rules_of("norm_forward x=f32:3x4"), "epsilon 0.." + most + ", momentum 0..1");
  EXPECT_EQ(rules_of("norm_affine x=f32:3x4"), "epsilon 0.." + most);
  EXPECT_EQ(rules_of("norm_forward x=f32:3x4 activation=clip"),
            "epsilon 0.." + most + ", momentum 0..1, low " + any + ", high " + any + " from low");
  EXPECT_EQ(rules_of("norm_inference x=f32:2x3x4x5 activation=elu"), "epsilon 0.." + most + ", slope " + any);
  EXPECT_EQ(rules_of("norm_backward dy=f32:3x4"), "");
  EXPECT_EQ(rules_of("norm_backward dy=f32:3x4 activation=clipped_relu"), "high 0..inf");
  for (const std::string pass : {"forward", "backward"}) {
    EXPECT_EQ(rules_of("local_norm_" + pass + " x=f32:3x8x4x4"),
              "lrn_alpha 0.." + most + ", lrn_beta 1e-45.." + most + ", lrn_k " + least + ".." + most);
    EXPECT_EQ(rules_of("cross_entropy_" + pass + " x=f32:3x4"), "");
    EXPECT_EQ(rules_of("cross_entropy_" + pass + " x=f32:3x4 smoothing=any"), "smoothing 0..1");
  }
  EXPECT_EQ(rules_of("dropout x=f32:3x4"), "p 0..1");
  const std::string attention = "attention_forward q=f32:1x2x3x4 k=f32:1x2x5x4 v=f32:1x2x5x4";
  EXPECT_EQ(rules_of(attention), "");
  EXPECT_EQ(rules_of(attention + " dropout=any"), "dropout 0..1");
}

// A call that gives no numbers has these; checks give others, where fills of small integers meet every branch.
TEST(UsualValues, AreThoseThatTheHeadersName) {
  const auto scalar = [](const std::string& line, const std::string& name) {
    const Request request = Request::parse(line);
    const auto& scalars = operation(request.operation).scalars();
    const auto found =
        std::find_if(scalars.begin(), scalars.end(), [&](const auto& each) { return each.name == name; });
    return usual_values(request).operation_scalars.at(static_cast<size_t>(found - scalars.begin()));
  };
  EXPECT_EQ(scalar("activation_forward x=f32:3x4 mode=leaky_relu", "slope"), 0.01F);
  EXPECT_EQ(scalar("activation_forward x=f32:3x4 mode=elu", "slope"), 1.0F);
  EXPECT_EQ(scalar("activation_forward x=f32:3x4 mode=clipped_relu", "high"), 6.0F);
  EXPECT_EQ(scalar("activation_backward x=f32:3x4 dy=f32:3x4 mode=swish", "slope"), 1.0F);
  EXPECT_EQ(scalar("norm_forward x=f32:3x4 axes=1 activation=hard_sigmoid", "offset"), 0.5F);
  EXPECT_EQ(scalar("norm_forward x=f32:3x4 axes=1 mode=rms", "epsilon"), 1e-5F);
  EXPECT_EQ(scalar("norm_forward x=f32:3x4 axes=1", "momentum"), 0.1F);
  EXPECT_EQ(scalar("dropout x=f32:3x4", "p"), 0.5F);
  EXPECT_EQ(scalar("local_norm_forward x=f32:3x4", "lrn_alpha"), 1e-4F);
  EXPECT_EQ(scalar("local_norm_forward x=f32:3x4", "lrn_beta"), 0.75F);
  EXPECT_EQ(scalar("local_norm_forward x=f32:3x4", "lrn_k"), 2);
  EXPECT_EQ(scalar("tensor_set y=f32:3x4", "value"), 0);
  EXPECT_EQ(scalar("tensor_transform x=f32:3x4", "value"), 0);
  EXPECT_EQ(scalar("cross_entropy_forward x=f32:3x4 smoothing=any", "smoothing"), 0);
  const std::string gradient = "local_norm_backward x=f32:3x4 means=f32:3x4 dy=f32:3x4 dmeans=f32:3x4";
  EXPECT_EQ(scalar(gradient, "dmeans_alpha"), 1);
  EXPECT_EQ(scalar(gradient, "dmeans_beta"), 0);
  EXPECT_EQ(usual_values(Request::parse("dropout x=f32:3x4")).operation_integers, RunValues().operation_integers);
}

// The numbers without a default are the activation's, which depends on its function.
TEST(UsualValues, AreKnownOfEveryNumber) {
  const std::set<std::string> of_activations = {"slope", "offset", "low", "high"};
  for (const Operation* each : operations()) {
    for (const ScalarDefinition& scalar : each->scalars()) {
      EXPECT_EQ(scalar.fallback.has_value(), !of_activations.contains(scalar.name)) << each->name() << scalar.name;
    }
  }
}

}  // namespace
}  // namespace kiln::operations_test
