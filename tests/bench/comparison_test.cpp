// The comparison with cuDNN, against a cuDNN of the tests' own (fake_cudnn.cpp) on the emulated device.
#include "comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "kiln/version.h"
#include "results.h"

namespace kiln::bench {
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
    unsetenv("FAKE_CUDNN_VERSION");
  }

  RowResult compare(const std::string& request, double seconds = 60) {
    Comparison comparison(*kiln_, device_, *stream_, *cudnn_, {});
    return comparison.run(Request::parse(request), seconds);
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

TEST_F(VsCudnn, WhatCannotBeComparedIsReportedWithItsReason) {
  EXPECT_EQ(compare("pool_forward x=f32:1x2x4x4 mode=max window=2 stride=2").status, "not comparable");
  EXPECT_THAT(compare("conv_forward x=f32:1x2x4x4 w=f32:2x2x3x3 epilogue=relu").reason, HasSubstr("epilogue"));
  EXPECT_THAT(compare("conv_forward x=f32:4x2x4x4 w=f32:2x2x3x3 n=?").reason, HasSubstr("dynamic"));
  EXPECT_THAT(compare("conv_forward x=f32:4x2x4x4 w=f32:2x2x3x3 beta=1").reason, HasSubstr("adds"));
  const RowResult half = compare("conv_forward x=f16:1x2x4x4 w=f16:2x2x3x3");
  EXPECT_EQ(half.status, "failed");
  EXPECT_THAT(half.reason, HasSubstr("the fake knows f32 only"));
}

TEST_F(VsCudnn, WithoutTimeTheFirstConfigurationStillMeetsKiln) {
  const RowResult row = compare(layer, 0);
  EXPECT_EQ(row.status, "compared");
  EXPECT_EQ(row.cudnn_config, "engine 1 (2=0)");
  EXPECT_EQ(row.configs[1].outcome, "no time");
  EXPECT_EQ(row.ratio().pairs, 9);
}

TEST_F(VsCudnn, TensorCoresAreEqualArithmeticOnlyBelowF32OrWhereTf32IsPermitted) {
  const CudnnConvolution convolution(*cudnn_, Request::parse(layer));
  const auto configs = convolution.engine_configs();
  const auto refused = [&](const std::string& request, size_t config) {
    return CudnnConvolution::unequal_arithmetic(Request::parse(request), configs[config]).has_value();
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
  const std::string table =
      print_table(again, {row.request, failed.request, Request::parse("softmax_forward x=f32:1x5").key()});
  EXPECT_THAT(table, HasSubstr("conv 1x6x9x11 -> 10, 3x2"));
  EXPECT_THAT(table, HasSubstr("not comparable"));
  EXPECT_THAT(table, HasSubstr("geometric mean of 1 layers"));
  EXPECT_THAT(table, HasSubstr("1 layers are still to be run"));
}

}  // namespace
}  // namespace kiln::bench
