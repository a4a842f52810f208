// The comparison with cuDNN, against a cuDNN of the tests' own (fake_cudnn.cpp) on the emulated device.
#include "comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "cudnn_offers.h"
#include "kiln/version.h"
#include "results.h"

namespace kiln::bench::comparison_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* const layer = "conv_forward x=f32:1x6x9x11 w=f32:10x3x3x2 pad=1,0,2,1 stride=2,1 dilation=1,2 groups=2";

class VsCudnn : public testing::Test {
 protected:
  VsCudnn() {
    setenv("FAKE_CUDNN_DRIVER", KILN_EMULATOR, 1);
    Environment environment;
    environment.driver = "emulator";
    driver_ = device::Driver::open({environment.driver});
    device_ = device::ContextHandle::acquire(device::Device(driver_, 0));
    current_.emplace(*device_);
    ContextOptions options;
    options.environment = environment;
    options.cache = "off";
    kiln_.emplace(options);
    stream_.emplace(device_);
    cudnn_.emplace(CudnnLibrary::open(KILN_FAKE_CUDNN), stream_->raw());
  }
  ~VsCudnn() override {
    unsetenv("FAKE_CUDNN_FAILS");
    unsetenv("FAKE_CUDNN_UNFUSED");
    unsetenv("FAKE_CUDNN_VERSION");
  }

  RowResult compare(const std::string& request, double seconds = 60) {
    Comparison comparison(*kiln_, device_, *stream_, *cudnn_, {});
    return comparison.run(Request::parse(request), seconds);
  }

  // How many ways give what the reference gives: calls, and of each form one engine that computes.
  int right_offers(const std::string& line) {
    const Request request = Request::parse(line);
    OperandSets operands(device_, request);
    const OutputJudge judge(request, operands);
    int right = 0;
    for (const CudnnOffer& offer : cudnn_offers(*cudnn_, request)) {
      if (!offer.heuristic.empty() && offer.name.find("engine 1 (2=1)") == std::string::npos) continue;
      const auto side = offer.prepare(device_, int64_t{1} << 30, operands);
      const double error = judge.error_of(operands, *stream_, [&] { side->run(0); });
      EXPECT_LT(error, 1e-6) << line << ": " << offer.name;
      right += error < 1e-6;
    }
    return right;
  }

  std::shared_ptr<const device::Driver> driver_;
  std::shared_ptr<const device::ContextHandle> device_;
  std::optional<device::Current> current_;
  std::optional<Context> kiln_;
  std::optional<device::Stream> stream_;
  std::optional<CudnnHandle> cudnn_;
};

TEST_F(VsCudnn, EveryConfigurationIsReportedAndTheFastestRightOneMeetsKiln) {
  const RowResult row = compare(layer);
  EXPECT_EQ(row.status, "compared") << row.reason;
  std::vector<std::string> outcomes;
  for (const ConfigResult& config : row.configs) outcomes.push_back(config.name + " " + config.outcome);
  EXPECT_THAT(outcomes, ElementsAre("engine 1 (2=0) timed", "engine 1 (2=1) timed", "engine 2 () unequal arithmetic",
                                    "engine 3 () refused", "engine 4 () wrong", "engine 5 () too much workspace",
                                    "engine 6 () timed"));
  EXPECT_EQ(row.configs[1].heuristic, "A");
  EXPECT_EQ(row.configs[6].heuristic, "fallback");
  EXPECT_EQ(row.cudnn_config, "engine 1 (2=1)");
  EXPECT_EQ(row.cudnn_workspace_bytes, 32 << 20);
  EXPECT_THAT(row.configs[3].detail, HasSubstr("engine 3 never works"));
}

TEST_F(VsCudnn, BothOutputsAreComparedAndPairsAreComplete) {
  const RowResult row = compare(layer);
  EXPECT_LT(row.kiln_error, 1e-6);
  EXPECT_LT(row.cudnn_error, 1e-6);
  EXPECT_LT(row.difference, 1e-6);
  ASSERT_EQ(row.kiln_seconds.size(), row.cudnn_seconds.size());
  EXPECT_GE(row.ratio().pairs, 9);
  EXPECT_GT(row.ratio().median, 0);
  EXPECT_GE(row.sets, 2);
  EXPECT_EQ(row.start, "graph");
  EXPECT_FALSE(row.kiln_variant.empty());
  EXPECT_GT(row.roofline_seconds, 0);
}

TEST_F(VsCudnn, AnEpilogueIsOfferedFusedTwiceAndSeparate) {
  const RowResult row = compare("conv_forward x=f32:1x6x9x11 w=f32:10x3x3x2 pad=1 groups=2 epilogue=bias+add+clip");
  EXPECT_EQ(row.status, "compared") << row.reason;
  ASSERT_EQ(row.configs.size(), 21U);
  EXPECT_EQ(row.configs[0].name, "fused: engine 1 (2=0)");
  EXPECT_EQ(row.configs[7].name, "fused, residual first: engine 1 (2=0)");
  EXPECT_EQ(row.configs[14].name, "separate: engine 1 (2=0), then engine 1 (2=0)");
  for (const size_t form : {0, 7, 14}) {
    EXPECT_EQ(row.configs[form + 1].outcome, "timed") << row.configs[form + 1].detail;
    EXPECT_EQ(row.configs[form + 2].outcome, "unequal arithmetic");
    EXPECT_EQ(row.configs[form + 4].outcome, "wrong");
  }
  EXPECT_GT(row.configs[15].seconds, row.configs[1].seconds) << "two graphs take longer than one";
  EXPECT_EQ(row.configs[14].workspace_bytes, 64 << 20) << "one workspace serves both";
  EXPECT_LT(row.difference, 1e-6);
}

TEST_F(VsCudnn, EveryFormOfEveryEpilogueIsRight) {
  const std::string conv = "conv_forward x=f32:2x3x5x4:nhwc w=f32:7x3x3x3:nhwc pad=1 epilogue=";
  for (const char* const epilogue : {"relu", "clip", "add+bias", "add+relu"})
    EXPECT_EQ(right_offers(conv + epilogue), 2);
  for (const char* const epilogue : {"bias", "bias+relu", "bias+clip", "bias+add", "bias+add+relu"}) {
    EXPECT_EQ(right_offers(conv + epilogue), 3) << epilogue;
  }
  EXPECT_EQ(right_offers("conv_forward x=f32:2x6x11 w=f32:4x3x3 groups=2 stride=2 epilogue=bias+relu"), 3)
      << "one axis";
}

TEST_F(VsCudnn, WhereNothingIsFusedTheSeparateFormMeetsKiln) {
  setenv("FAKE_CUDNN_UNFUSED", "1", 1);
  const RowResult row = compare("conv_forward x=f32:1x6x9x11 w=f32:10x6x3x3 pad=1 epilogue=bias", 0);
  EXPECT_EQ(row.status, "compared") << row.reason;
  EXPECT_EQ(row.configs[0].name, "fused");
  EXPECT_EQ(row.configs[0].outcome, "refused");
  EXPECT_THAT(row.configs[0].detail, HasSubstr("fuses nothing"));
  EXPECT_EQ(row.cudnn_config, "separate: engine 1 (2=0), then engine 1 (2=0)");
  EXPECT_LT(row.difference, 1e-6);
}

TEST_F(VsCudnn, GradientsOfConvolutionAreComparedToo) {
  for (const char* const gradient :
       {"conv_backward_data dy=f32:1x10x5x11 w=f32:10x3x3x2 dx=f32:1x6x9x11 pad=1,0,2,1 stride=2,1 groups=2",
        "conv_backward_filter x=f32:1x6x9x11 dy=f32:1x10x5x11 dw=f32:10x3x3x2 pad=1,0,2,1 stride=2,1 groups=2"}) {
    const RowResult row = compare(gradient);
    EXPECT_EQ(row.status, "compared") << row.reason;
    EXPECT_EQ(row.cudnn_config, "engine 1 (2=1)");
    ASSERT_EQ(row.configs.size(), 7U);
    EXPECT_EQ(row.configs[2].outcome, "unequal arithmetic");
    EXPECT_EQ(row.configs[4].outcome, "wrong");
    EXPECT_LT(row.kiln_error, 1e-6);
    EXPECT_LT(row.cudnn_error, 1e-6);
    EXPECT_LT(row.difference, 1e-6);
  }
  EXPECT_EQ(
      right_offers("conv_backward_data dy=f32:2x7x3x2:nhwc w=f32:7x3x3x3:nhwc dx=f32:2x3x6x4:nhwc pad=1 stride=2"), 1)
      << "a row of dx that no window needs";
  EXPECT_EQ(right_offers("conv_backward_filter x=f32:2x6x11 dy=f32:2x4x5 dw=f32:4x3x3 groups=2 stride=2"), 1)
      << "one axis";
}

TEST_F(VsCudnn, PoolingIsAGraphsOperationAndACall) {
  const RowResult row = compare("pool_forward x=f32:2x5x13x11 mode=max window=3 stride=2 pad=1");
  EXPECT_EQ(row.status, "compared") << row.reason;
  ASSERT_EQ(row.configs.size(), 8U);
  EXPECT_EQ(row.configs[0].name, "resample: engine 1 (2=0)");
  EXPECT_EQ(row.configs[0].outcome, "timed") << row.configs[0].detail;
  EXPECT_EQ(row.configs[4].outcome, "wrong");
  EXPECT_EQ(row.configs[7].name, "cudnnPoolingForward");
  EXPECT_EQ(row.configs[7].outcome, "timed") << row.configs[7].detail;
  EXPECT_EQ(row.cudnn_config, "cudnnPoolingForward") << "it takes the least time";
  EXPECT_LT(row.difference, 1e-6);
}

TEST_F(VsCudnn, EveryPoolingIsRightAndWhatTheCallCannotSayIsLeftToTheGraph) {
  EXPECT_EQ(right_offers("pool_forward x=f32:2x5x13x11:nhwc mode=avg window=3,2 stride=2,3 pad=1,0"), 2);
  EXPECT_EQ(right_offers("pool_forward x=f32:1x3x9x10 mode=avg_padded window=3 stride=2 pad=1"), 2);
  EXPECT_EQ(right_offers("pool_forward x=f32:2x5x31 mode=max window=3 stride=2"), 2);
  EXPECT_EQ(right_offers("pool_forward x=f32:1x5x7x7 mode=avg window=global"), 2);
  EXPECT_EQ(right_offers("pool_forward x=f32:2x5x12x12 mode=max window=3 stride=2 ceil=1"), 1);
  EXPECT_EQ(right_offers("pool_forward x=f32:2x5x12x12 mode=avg window=3 stride=2 pad=1,0,0,1"), 1);
}

TEST_F(VsCudnn, SoftmaxIsACallByChannelAndForRowsByInstance) {
  const RowResult rows = compare("softmax_forward x=f32:5x37");
  EXPECT_EQ(rows.status, "compared") << rows.reason;
  ASSERT_EQ(rows.configs.size(), 2U);
  EXPECT_EQ(rows.configs[0].name, "cudnnSoftmaxForward by channel");
  EXPECT_EQ(rows.configs[1].name, "cudnnSoftmaxForward by instance");
  EXPECT_LT(rows.difference, 1e-6);
  EXPECT_EQ(right_offers("softmax_forward x=f32:5x37 mode=log"), 2);
  EXPECT_EQ(right_offers("softmax_forward x=f32:17 axis=0"), 2);
  EXPECT_EQ(right_offers("softmax_forward x=f32:3x11x5 axis=1"), 1);
  EXPECT_EQ(right_offers("softmax_forward x=f32:2x3x5x7:nhwc axis=1 mode=log"), 2) << "channels last are rows";
  EXPECT_EQ(right_offers("softmax_forward x=f32:2x3x2x3x4 axis=2"), 1);
}

TEST_F(VsCudnn, WhatCannotBeComparedIsReportedWithItsReason) {
  EXPECT_THAT(compare("pool_forward x=f32:1x2x9x9 mode=max window=2 stride=2 dilation=2").reason,
              HasSubstr("dilation"));
  EXPECT_THAT(compare("pool_forward x=f32:1x2x6x6 mode=avg_padded window=3 stride=2 ceil=1").reason,
              HasSubstr("beyond"));
  EXPECT_THAT(compare("conv_forward x=f32:4x2x4x4 w=f32:2x2x3x3 n=?").reason, HasSubstr("dynamic"));
  EXPECT_THAT(compare("conv_forward x=f32:4x2x4x4 w=f32:2x2x3x3 beta=1").reason, HasSubstr("adds"));
  const RowResult uncovered = compare("conv_backward_bias dy=f32:2x3x4x4");
  EXPECT_EQ(uncovered.status, "not comparable");
  EXPECT_THAT(uncovered.reason, HasSubstr("does not cover conv_backward_bias"));
  EXPECT_THAT(compare("gemm a=f32:0x5 b=f32:5x3").reason, HasSubstr("empty"));
  const RowResult nothing = compare("softmax_forward x=f32:2x3x2x3x4:9999,999,99,9,1 axis=4");
  EXPECT_EQ(nothing.status, "no cuDNN configuration");
  EXPECT_THAT(nothing.reason, HasSubstr("offers nothing"));
  const RowResult half = compare("conv_forward x=f16:1x2x4x4 w=f16:2x2x3x3");
  EXPECT_EQ(half.status, "failed");
  EXPECT_THAT(half.reason, HasSubstr("the fake knows f32 only"));
}

TEST_F(VsCudnn, PlansThatThreadsBuildAheadFareAsThoseOfOneThread) {
  const auto outcomes = [&](unsigned threads) {
    ComparisonOptions options;
    options.threads = threads;
    std::vector<std::string> texts;
    for (const char* request : {layer, "conv_forward x=f32:1x4x5x5 w=f32:4x4x3x3 pad=1 epilogue=bias+relu"}) {
      Comparison comparison(*kiln_, device_, *stream_, *cudnn_, options);
      for (const ConfigResult& config : comparison.run(Request::parse(request), 60).configs) {
        texts.push_back(config.name + ", " + config.outcome + ": " + config.detail);
      }
    }
    return texts;
  };
  const std::vector<std::string> alone = outcomes(1);
  EXPECT_GT(alone.size(), 8U);
  EXPECT_EQ(outcomes(5), alone);
}

TEST_F(VsCudnn, WithoutTimeTheFirstConfigurationStillMeetsKiln) {
  const RowResult row = compare(layer, 0);
  EXPECT_EQ(row.status, "compared");
  EXPECT_EQ(row.cudnn_config, "engine 1 (2=0)");
  EXPECT_EQ(row.configs[1].outcome, "no time");
  EXPECT_EQ(row.ratio().pairs, 9);
}

TEST_F(VsCudnn, TensorCoresAreEqualArithmeticOnlyBelowF32OrWhereTf32IsPermitted) {
  auto forms = graph_forms(cudnn_->library(), Request::parse(layer));
  const auto configs = CudnnGraph(*cudnn_, std::move(forms[0].graphs[0])).engine_configs();
  const auto refused = [&](const std::string& request, size_t config) {
    return unequal_arithmetic(Request::parse(request), configs[config]).has_value();
  };
  EXPECT_TRUE(refused("conv_forward x=f32:1x2x4x4 w=f32:2x2x3x3", 2));
  EXPECT_FALSE(refused("conv_forward x=f32:1x2x4x4 w=f32:2x2x3x3", 0));
  EXPECT_FALSE(refused("conv_forward x=f16:1x2x4x4 w=f16:2x2x3x3", 2));
  EXPECT_FALSE(refused("conv_forward x=f32:1x2x4x4 w=f32:2x2x3x3 acc=f32 tf32", 2));
}

TEST_F(VsCudnn, AHandleThatCannotBeMadeSaysWhy) {
  setenv("FAKE_CUDNN_FAILS", "1", 1);
  try {
    const CudnnHandle handle(CudnnLibrary::open(KILN_FAKE_CUDNN), nullptr);
    FAIL();
  } catch (const CudnnError& error) {
    EXPECT_EQ(error.status(), cuda_abi::CUDNN_STATUS_NOT_INITIALIZED);
    EXPECT_THAT(error.what(), HasSubstr("cudnnCreate failed"));
    EXPECT_THAT(error.what(), HasSubstr("no device for the fake"));
  }
}

TEST_F(VsCudnn, OnlyACudnn9IsTaken) {
  EXPECT_EQ(CudnnLibrary::open(KILN_FAKE_CUDNN)->version(), "9.19.0");
  setenv("FAKE_CUDNN_VERSION", "8907", 1);
  EXPECT_THROW(CudnnLibrary::open(KILN_FAKE_CUDNN), Error);
  EXPECT_THROW(CudnnLibrary::open("/no/such/libcudnn.so.9"), Error);
  EXPECT_THROW(CudnnLibrary::open(KILN_EMULATOR), Error);  // lacks the entry points
}

TEST_F(VsCudnn, ResultsAreReadBackAndAKilledRunGoesOn) {
  const std::string path = testing::TempDir() + "kiln_vs_cudnn.jsonl";
  std::remove(path.c_str());
  const Conditions here{"device", "13.0", "9.19.0", "0.1.0"}, elsewhere{"other", "13.0", "9.19.0", "0.1.0"};
  const RowResult row = compare(layer, 0);
  {
    ResultFile file(path, here);
    EXPECT_TRUE(file.rows().empty());
    file.add(row);
    ResultFile(path, elsewhere).add(row);
  }
  std::ofstream(path, std::ios::app) << to_line(here, row).substr(0, 100);  // killed in the middle of a line
  ResultFile again(path, here);
  ASSERT_EQ(again.rows().size(), 1u);
  EXPECT_EQ(again.rows()[0], row);
  EXPECT_NE(again.find(row.request), nullptr);
  RowResult failed;
  failed.request = "softmax_forward x=f32:3x100:nc y=f32:3x100:nc axis=1 mode=accurate";
  failed.status = "not comparable";
  failed.kiln_error = std::numeric_limits<double>::infinity();
  again.add(failed);
  EXPECT_EQ(ResultFile(path, here).rows().size(), 2u);
  EXPECT_THAT(conditions_in(path), ElementsAre(here, elsewhere));
  const std::string table =
      print_table(again, {row.request, failed.request, Request::parse("softmax_forward x=f32:1x5").key()});
  EXPECT_THAT(table, HasSubstr("conv 1x6x9x11 -> 10, 3x2"));
  EXPECT_THAT(table, HasSubstr("not comparable"));
  EXPECT_THAT(table, HasSubstr("geometric mean of 1 layers"));
  EXPECT_THAT(table, HasSubstr("1 layers are still to be run"));
}

}  // namespace
}  // namespace kiln::bench::comparison_test
