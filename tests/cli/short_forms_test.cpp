#include "short_forms.h"

#include <gtest/gtest.h>

namespace kiln::cli::short_forms_test {
namespace {

std::string of(const std::string& line) {
  return summary(Request::parse(line));
}

TEST(Summary, SaysWhatMattersInFewWords) {
  EXPECT_EQ(of("conv_forward x=f32:1x64x56x56 w=f32:64x64x3x3 pad=1 epilogue=bias+relu"),
            "conv 1x64x56x56 -> 64, 3x3, pad 1, bias+relu");
  EXPECT_EQ(of("conv_forward x=f16:8x32x14x14:nhwc w=f16:32x1x3x3 pad=1,2,0,1 stride=2,1 dilation=2 groups=32 n=?"),
            "conv 8x32x14x14 f16 nhwc n=? -> 32, 3x3, stride 2x1, pad 1x2-0x1, dilation 2, groups 32");
  EXPECT_EQ(of("conv_backward_data dy=f32:1x64x28x28 w=f32:64x32x3x3 pad=1 stride=2 output_pad=1"),
            "conv data gradient 1x64x28x28 -> 1x32x56x56, 3x3, stride 2, pad 1");
  EXPECT_EQ(of("conv_backward_filter x=f16:8x32x14x14:nhwc dy=f16:8x32x14x14 dw=f16:32x1x3x3 pad=1 groups=32"),
            "conv filter gradient 8x32x14x14 f16 nhwc, 8x32x14x14, 3x3, pad 1, groups 32");
  EXPECT_EQ(of("conv_backward_bias dy=f32:8x32x14x14:nhwc n=?"), "conv bias gradient 8x32x14x14 nhwc n=?");
  EXPECT_EQ(of("local_conv_forward x=f32:1x64x14x14 w=f32:128x64x3x3 pad=1 grid=2,1 epilogue=bias"),
            "local conv 1x64x14x14 -> 64, 3x3, pad 1, grid 2x1, bias");
  EXPECT_EQ(of("local_conv_backward_data dy=f32:1x8x4x4 w=f32:16x8x3x3x3 pad=1"),
            "local conv data gradient 1x8x4x4 -> 1x3x4x4, 3x3, pad 1, grid 4x4");
  EXPECT_EQ(of("local_conv_backward_filter x=f32:1x3x4x4 dy=f32:1x8x4x4 dw=f32:32x3x3x3 pad=1 grid=2"),
            "local conv filter gradient 1x3x4x4, 1x8x4x4, 3x3, pad 1, grid 2x2");
  EXPECT_EQ(of("pool_forward x=f32:1x8x7x7 mode=avg window=global"), "avg pool 1x8x7x7, global");
  EXPECT_EQ(of("pool_forward x=f32:1x8x9x9 mode=max window=3 stride=2 pad=1"), "max pool 1x8x9x9, 3, stride 2, pad 1");
  EXPECT_EQ(of("unpool_backward dy=f16:1x8x9x9 indices=i32:1x8x4x4 window=3 stride=2"),
            "unpool backward 1x8x9x9 f16, 3, stride 2");
  EXPECT_EQ(of("softmax_forward x=bf16:4x10 mode=log"), "log-softmax 4x10 bf16, axis 1");
  EXPECT_EQ(of("softmax_backward y=f16:4x10"), "gradient of softmax 4x10 f16, axis 1");
  EXPECT_EQ(of("activation_forward x=f16:2x8x7x7:nhwc mode=gelu n=?"), "gelu 2x8x7x7 f16 nhwc n=?");
  EXPECT_EQ(of("activation_backward y=f32:4x10 dy=f32:4x10 mode=tanh"), "gradient of tanh 4x10");
  EXPECT_EQ(of("tensor_transform x=f32:1x3x7x7 y=i8:1x3x7x7:nhwc"), "transform 1x3x7x7 -> 1x3x7x7 i8 nhwc");
  EXPECT_EQ(of("tensor_set y=f16:4x10"), "set 4x10 f16");
  EXPECT_EQ(of("tensor_op a=f32:4x1 b=f32:4x10 mode=add"), "tensor add 4x10");
  EXPECT_EQ(of("gemm a=f16:2x8x64 b=f16:1x64x10 c=f32:2x8x10 epilogue=bias+relu"),
            "gemm 2x8x64 by 1x64x10 f16 (c f32), bias+relu");
  EXPECT_EQ(of("cross_entropy_forward x=f16:8x10 reduction=sum n=?"), "cross entropy 8x10 f16 n=?, sum");
  EXPECT_EQ(of("cross_entropy_backward x=f32:8x10x3x3"), "gradient of cross entropy 8x10x3x3, mean");
  EXPECT_EQ(of("dropout x=f16:8x10 n=?"), "dropout 8x10 f16 n=?");
  EXPECT_EQ(of("norm_forward x=f16:8x10 mode=rms epilogue=add activation=swish"),
            "rms normalisation 8x10 f16, axes 1, add, swish");
  EXPECT_EQ(of("norm_backward dy=f32:8x10 activation=mish"), "gradient of normalisation 8x10, axes 1, mish");
  EXPECT_EQ(of("local_norm_forward x=f16:8x10x3x3:nhwc"), "local normalisation 8x10x3x3 f16 nhwc, 5 along axes 1");
  EXPECT_EQ(of("local_norm_backward x=f32:8x10x3x3 axes=2,3 size=4"),
            "gradient of local normalisation 8x10x3x3, 4 along axes 2,3");
}

// Requests that differ in them have times of their own.
TEST(Summary, SaysWhatOperandsHaveDtypesOfTheirOwn) {
  EXPECT_EQ(of("conv_forward x=f16:1x8x4x4:nhwc w=f8e4m3:8x8x1x1 epilogue=bias"),
            "conv 1x8x4x4 f16 nhwc (w f8e4m3) -> 8, 1x1, bias");
  EXPECT_EQ(of("conv_forward x=f32:1x8x4x4 w=f32:8x8x1x1 y=f8e5m2:1x8x4x4"), "conv 1x8x4x4 (y f8e5m2) -> 8, 1x1");
  EXPECT_EQ(of("gemm a=f8e4m3:8x64 b=f8e5m2:64x10 c=f32:8x10 n=?"), "gemm 8x64 by 64x10 f8e4m3 (b f8e5m2, c f32) n=?");
  EXPECT_EQ(of("softmax_forward x=f8e4m3:4x10 y=f16:4x10"), "softmax 4x10 f16 (x f8e4m3), axis 1");
  EXPECT_EQ(of("tensor_transform x=f8e4m3:1x3x7x7 y=f32:1x3x7x7 n=?"), "transform 1x3x7x7 f8e4m3 n=? -> 1x3x7x7 f32");
  EXPECT_EQ(of("pool_forward x=f16:1x8x7x7 indices=i32:1x8x6x6 window=2"), "max pool 1x8x7x7 f16, 2");
  EXPECT_EQ(of("norm_forward x=f16:8x10 mean=f32:8x1 axes=1"), "normalisation 8x10 f16, axes 1");
  EXPECT_EQ(of("cross_entropy_forward x=f16:8x10 reduction=none"), "cross entropy 8x10 f16, none");
}

TEST(Words, GiveTimesAndSharesTheirUnits) {
  const double zero = 0;
  EXPECT_EQ(time_text(5.87e-9), "5.9 ns");
  EXPECT_EQ(time_text(1.234e-5), "12.34 us");
  EXPECT_EQ(time_text(1.5e-3), "1.50 ms");
  EXPECT_EQ(time_text(2.25), "2.2 s");
  EXPECT_EQ(time_text(1e-7), "0.10 us");
  EXPECT_EQ(time_text(1e-3), "1.00 ms");
  EXPECT_EQ(time_text(1), "1.0 s");
  const std::vector<std::pair<double, const char*>> durations = {{-3, "0s"},      {0.4, "0s"},     {59.4, "59s"},
                                                                 {59.6, "1m00s"}, {61, "1m01s"},   {3599, "59m59s"},
                                                                 {3600, "1h00m"}, {3720, "1h02m"}, {90061, "25h01m"}};
  for (const auto& [seconds, text] : durations) EXPECT_EQ(duration_text(seconds), text);
  EXPECT_EQ(count_text(0, "layer"), "0 layers");
  EXPECT_EQ(count_text(1, "layer"), "1 layer");
  EXPECT_EQ(count_text(2, "layer"), "2 layers");
  EXPECT_EQ(percent_text(0.4242), "42.4%");
  EXPECT_EQ(percent_text(0.0 / zero), "-") << "an empty batch takes no time";
  EXPECT_EQ(ratio_text(0.0 / zero), "-");
  EXPECT_EQ(ratio_text(1.256), "1.26x");
  EXPECT_EQ(rate_text(66.9e12, "FLOP/s"), "66.9 TFLOP/s");
  EXPECT_EQ(rate_text(999, "B/s"), "999 B/s");
  EXPECT_EQ(rate_text(1e15, ""), "1 P");
  EXPECT_EQ(rate_text(1e12, ""), "1 T");
  EXPECT_EQ(rate_text(1e9, ""), "1 G");
  EXPECT_EQ(rate_text(1e6, ""), "1 M");
  EXPECT_EQ(rate_text(1e3, ""), "1 k");
  EXPECT_EQ(predictions_text(true, "a=1"), "calibrated on this device: a=1");
  EXPECT_EQ(predictions_text(false, "a=1"), "assumed, this device is not calibrated: a=1");
}

TEST(Words, AnErrorOfSeveralLinesSaysTheMostInOne) {
  EXPECT_EQ(in_one_line("it hung"), "it hung");
  EXPECT_EQ(in_one_line(""), "");
  EXPECT_EQ(in_one_line("it hung\nfor long"), "it hung");
  EXPECT_EQ(in_one_line("NVRTC 13.0 cannot compile mine.cu: NVRTC_ERROR_COMPILATION\nmine.cu(3): warning #177-D: x\n"
                        "mine.cu(13): error: expected a \";\"\n    y\n    ^\nmine.cu(14): error: another\n"),
            "mine.cu(13): error: expected a \";\"");
  EXPECT_EQ(in_one_line("the user code does not compile:\nline 2, column 5: identifier \"f\" is undefined\n    f(x)"),
            "the user code does not compile: line 2, column 5: identifier \"f\" is undefined");
  EXPECT_EQ(in_one_line("cuEventRecord of an event failed: CUDA_ERROR_ILLEGAL_ADDRESS, an illegal access:\n"
                        "kernel k, block (0, 0, 0): writes 4 bytes at 0x10\n  PTX line 71: st.global.f32"),
            "cuEventRecord of an event failed: CUDA_ERROR_ILLEGAL_ADDRESS, an illegal access: "
            "kernel k, block (0, 0, 0): writes 4 bytes at 0x10");
}

}  // namespace
}  // namespace kiln::cli::short_forms_test
