#include "short_forms.h"

#include <gtest/gtest.h>

namespace kiln::cli::short_forms_test {
namespace {

TEST(Summary, IsTheShortFormOfTheRequestWithADigestOfItsUserCode) {
  const Expressions known = {{"gated", Expression("acc * 2")}};
  const std::string line = "softmax_forward x=f16:4x10";
  EXPECT_EQ(summary(Request::parse(line)), "softmax 4x10 f16, axis 1");
  EXPECT_EQ(summary(Request::parse(line + " epilogue=user:gated", known)),
            "softmax 4x10 f16, axis 1, user:" + known.at("gated").digest().substr(0, 8));
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
