// The cuDNN that is installed, without a device: it is loaded, has every entry point that is called, and takes every
// description that the comparison makes. Graphs, plans and runs need a device, and are left to a machine that has one.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cudnn_calls.h"
#include "cudnn_offers.h"
#include "kiln/base/error.h"
#include "kiln/generator/operations/conv_forward.h"

namespace kiln::bench::cudnn_library_test {
namespace {

class InstalledCudnn : public testing::Test {
 protected:
  void SetUp() override {
    const std::string found = KILN_CUDNN;
    try {
      library_ = CudnnLibrary::open(found.empty() ? std::nullopt : std::optional(found));
    } catch (const Error& error) {
      if (!found.empty()) throw;
      GTEST_SKIP() << "no cuDNN 9 is installed: " << error.what();
    }
  }

  std::shared_ptr<const CudnnLibrary> library_;
};

const std::vector<std::string> comparable = {
    "conv_forward x=f32:2x6x9x11 w=f32:10x3x3x2 pad=1,0,2,1 stride=2,1 dilation=1,2 groups=2",
    "conv_forward x=f16:1x8x7x5:nhwc w=f16:16x8x3x3:nhwc pad=1 epilogue=relu",
    "conv_forward x=f32:1x8x7x5 w=f32:16x8x3x3 pad=1 epilogue=bias",
    "conv_forward x=bf16:3x8x7x5:nhwc w=bf16:16x8x1x1:nhwc epilogue=bias+relu",
    "conv_forward x=f32:1x8x7x5:nhwc w=f32:16x8x3x3:nhwc epilogue=bias+add+relu",
    "conv_forward x=f32:1x8x7x5 w=f32:16x8x3x3 epilogue=add+clip",
    "conv_forward x=f32:1x8x37 w=f32:16x8x3 pad=1 stride=2 epilogue=bias+relu",
    "conv_forward x=f16:1x8x6x7x5 w=f16:16x8x3x3x3 pad=1 mode=convolution epilogue=bias+clip",
    "conv_backward_data dy=f32:2x10x5x10 w=f32:10x3x3x2 dx=f32:2x6x9x11 pad=1,0,2,1 stride=2,1 dilation=1,2 groups=2",
    "conv_backward_data dy=f16:1x16x7x5:nhwc w=f16:16x8x3x3:nhwc pad=1",
    "conv_backward_filter x=f32:1x8x7x5 dy=f32:1x16x7x5 dw=f32:16x8x3x3 pad=1",
    "conv_backward_filter x=f16:1x8x6x7x5 dy=f16:1x16x4x5x3 dw=f16:16x8x3x3x3",
    "pool_forward x=f32:2x5x13x11 mode=max window=3 stride=2 pad=1",
    "pool_forward x=f16:2x5x13x11:nhwc mode=avg window=3,2 stride=2,3 pad=1,0,0,1",
    "pool_forward x=bf16:2x5x12x12 mode=avg_padded window=3 stride=2 pad=1",
    "pool_forward x=f32:2x5x12x12 mode=max window=3 stride=2 ceil=1",
    "pool_forward x=f32:1x5x7x7 mode=avg window=global",
    "pool_forward x=f32:2x5x31 mode=max window=3 stride=2",
    "pool_forward x=f32:1x3x7x6x5 mode=max window=2 stride=2",
    "softmax_forward x=f32:64x1000",
    "softmax_forward x=f16:7x11x13 axis=1 mode=log",
    "softmax_forward x=bf16:2x3x5x7:nhwc axis=1",
    "softmax_forward x=f32:2x3x5x7x4 axis=2",
    "softmax_forward x=f32:17 axis=0",
};

TEST_F(InstalledCudnn, HasEveryEntryPointThatIsCalled) {
  EXPECT_EQ(library_->version().substr(0, 2), "9.") << library_->path();
}

TEST_F(InstalledCudnn, TakesEveryGraphsOperations) {
  for (const std::string& line : comparable) {
    const Request request = Request::parse(line);
    EXPECT_EQ(not_comparable(request), std::nullopt) << line;
    EXPECT_NO_THROW({
      const auto forms = graph_forms(library_, request);
      EXPECT_EQ(forms.empty(), request.operation == "softmax_forward") << line;
    }) << line;
  }
}

TEST_F(InstalledCudnn, TakesEveryCallsDescriptors) {
  const auto poolings = [&](const char* line) {
    return pooling_calls(library_, PoolForward::of(Request::parse(line))).size();
  };
  EXPECT_EQ(poolings("pool_forward x=f32:2x5x13x11 mode=max window=3 stride=2 pad=1"), 1U);
  EXPECT_EQ(poolings("pool_forward x=f16:2x5x31 mode=avg window=3 stride=2"), 1U);
  EXPECT_EQ(poolings("pool_forward x=f32:1x3x7x6x5 mode=avg_padded window=2 stride=2"), 1U);
  EXPECT_EQ(poolings("pool_forward x=f32:2x5x13x11 mode=max window=3 pad=1,0,0,1"), 0U) << "one pad for both sides";
  EXPECT_EQ(poolings("pool_forward x=f32:2x5x12x12 mode=max window=3 stride=2 ceil=1"), 0U) << "it rounds down";
  const auto softmaxes = [&](const char* line) {
    return softmax_calls(library_, SoftmaxForward::of(Request::parse(line))).size();
  };
  EXPECT_EQ(softmaxes("softmax_forward x=f32:64x1000"), 2U) << "by channel, by instance";
  EXPECT_EQ(softmaxes("softmax_forward x=f16:7x11x13 axis=1 mode=log"), 1U);
  EXPECT_EQ(softmaxes("softmax_forward x=f32:2x3x5x7x4 axis=2"), 1U) << "five dimensions, of which two pairs merge";
  EXPECT_EQ(softmaxes("softmax_forward x=f32:2x3x5x7x4:9999,999,99,9,1 axis=4"), 0U) << "four that do not merge";
}

// Only cuDNN itself can refuse: it refuses a description that makes no sense, so the tests above say something.
TEST_F(InstalledCudnn, RefusesAnOutputOfAnotherSize) {
  const Request request = Request::parse("conv_forward x=f32:1x8x7x5 w=f32:16x8x3x3");
  ConvForward conv = ConvForward::of(request);
  Operations graph(library_);
  const auto x = graph.operand(0, conv.x), w = graph.operand(1, conv.w), y = graph.operand(2, conv.x);
  EXPECT_THROW(graph.convolve(Operations::Convolution::forward, conv, x, w, y), CudnnError);
}

}  // namespace
}  // namespace kiln::bench::cudnn_library_test
