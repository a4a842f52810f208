// Smaller requests that are checked in the stead of large ones: which batch, and that what the large one may choose
// serves the small one too.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "algorithm_cases.h"
#include "kiln/checking/check.h"
#include "kiln/generator/catalogue.h"
#include "kiln/generator/operation.h"

namespace kiln::checking::stand_in_test {
namespace {

using testing_support::built_in_catalogue;
using testing_support::target_of;

std::optional<Request> smaller(const std::string& line) {
  return smaller_request(Request::parse(line), {});
}

int64_t smaller_batch_of(const std::string& line) {
  const std::optional<Request> request = smaller(line);
  return request ? request->batch() : 0;
}

TEST(SmallerRequest, HasNoMoreWorkThanAllowed) {
  const std::string conv = "x64x56x56:nhwc w=f16:64x64x3x3 pad=1 epilogue=bias+relu";
  EXPECT_EQ(smaller_batch_of("conv_forward x=f16:256" + conv), 2) << "462 million operations";
  EXPECT_EQ(smaller_batch_of("conv_forward x=f16:2" + conv), 0) << "is small enough";
  EXPECT_EQ(smaller_batch_of("pool_forward x=f32:64x64x112x112 mode=max window=3 stride=2 pad=1"), 4)
      << "20 MB are 4.98 images";
  EXPECT_EQ(smaller_batch_of("softmax_forward x=f32:2x10000000"), 0) << "there is none of 2, and no window";
}

TEST(SmallerRequest, EndsAsTheLargeOneDoes) {
  const auto batch_for = [](int64_t batch) {
    return smaller_batch_of("softmax_forward x=f32:" + std::to_string(batch) + "x10000");
  };
  EXPECT_EQ(batch_for(4096), 240) << "a multiple of 16, like 4096, of at most 250 rows";
  EXPECT_EQ(batch_for(4099), 243);
  const auto of_conv = [](int64_t batch) {
    return smaller_batch_of("conv_forward x=f32:" + std::to_string(batch) + "x64x56x56 w=f32:64x64x3x3 pad=1");
  };
  EXPECT_EQ(of_conv(37), 2) << "no odd batch is small enough";
  EXPECT_EQ(of_conv(64), 2);
  EXPECT_EQ(smaller_batch_of("softmax_forward x=f32:3x5000000"), 2) << "of three, two may be enough";
}

TEST(SmallerRequest, KeepsEverythingButTheBatch) {
  const Request large = Request::parse(
      "conv_forward x=f16:256x64x56x56:400000,1,8192,128 w=f16:64x64x3x3 pad=1 epilogue=bias+add+relu beta=any");
  const Request small = smaller_request(large, {}).value();
  EXPECT_EQ(small.batch(), 2);
  EXPECT_EQ(small.at("x").strides, large.at("x").strides);
  EXPECT_EQ(small.at("residual").extents.front(), 2);
  EXPECT_EQ(small.at("bias"), large.at("bias"));
  EXPECT_EQ(Request::parse(small.key()), small);
}

TEST(SmallerRequest, OfADynamicBatchIsASmallerBucket) {
  const Request small = smaller("conv_forward x=f16:200x64x28x28 w=f16:64x64x3x3 pad=1 n=?").value();
  EXPECT_TRUE(small.dynamic_batch);
  EXPECT_EQ(small.batch(), 8) << "462 million operations; the bucket is 256";
  EXPECT_EQ(smaller_batch_of("conv_forward x=f16:200x64x28x28 w=f16:48x64x3x3 pad=1 n=?"), 8)
      << "11 images are 477 million operations, and the bucket of 11 would be 16";
}

std::string smaller_key(const std::string& line) {
  const std::optional<Request> request = smaller(line);
  return request ? request->key() : "none";
}

std::string key_of(const std::string& line) {
  return Request::parse(line).key();
}

TEST(SmallerRequest, HasFewerRowsWhereImagesAreLarge) {
  EXPECT_EQ(smaller_key("conv_forward x=f32:1x64x225x224 w=f32:64x64x3x3 pad=1 epilogue=bias+add"),
            key_of("conv_forward x=f32:1x64x17x224 w=f32:64x64x3x3 pad=1 epilogue=bias+add"))
      << "30 rows are half a billion operations; 17 and 225 end alike";
  EXPECT_EQ(smaller_key("conv_backward_filter x=bf16:256x128x80x80:nhwc dy=bf16:256x256x40x40:nhwc "
                        "dw=bf16:256x128x3x3:nhwc stride=2 pad=1"),
            key_of("conv_backward_filter x=bf16:2x128x16x48:nhwc dy=bf16:2x256x8x24:nhwc dw=bf16:256x128x3x3:nhwc "
                   "stride=2 pad=1"))
      << "24 rows of 24 are too large, too";
  EXPECT_EQ(
      smaller_key("conv_backward_data dy=f32:2x64x110x54 w=f32:64x64x3x3 dx=f32:2x64x224x112 stride=2 dilation=2"),
      key_of("conv_backward_data dy=f32:2x64x62x54 w=f32:64x64x3x3 dx=f32:2x64x128x112 stride=2 dilation=2"))
      << "the row that no window reaches is there still";
  EXPECT_EQ(smaller_key("pool_forward x=f32:1x64x513x512 mode=max window=3 stride=2 indices=i32:1x64x256x255:nchw"),
            key_of("pool_forward x=f32:1x64x97x512 mode=max window=3 stride=2 indices=i32:1x64x48x255:nchw"));
  EXPECT_EQ(smaller_key("local_conv_forward x=f32:1x64x224x224 w=f32:64x64x3x3 pad=1 grid=1"), "none")
      << "filters of a local convolution belong to places";
  EXPECT_EQ(smaller_key("conv_forward x=f32:1x8192x2x2 w=f32:8192x8192x3x3 pad=1"), "none")
      << "two rows of two are the least";
}

TEST(SmallerRequest, HasFewerColumnsWhereRowsAreLarge) {
  EXPECT_EQ(smaller_key("conv_forward x=f16:1x64x8x100000 w=f16:64x64x3x3 pad=1"),
            key_of("conv_forward x=f16:1x64x8x832 w=f16:64x64x3x3 pad=1"))
      << "not 2 rows: a tile of 4 or 8 would be refused";
  EXPECT_EQ(smaller_key("conv_forward x=f16:1x64x100001 w=f16:64x64x3 pad=1"),
            key_of("conv_forward x=f16:1x64x20337 w=f16:64x64x3 pad=1"));
}

TEST(SmallerRequest, HasColumnsByTheStrideOfColumns) {
  const Request small = smaller("conv_forward x=f16:1x64x8x100000 w=f16:64x64x3x3 pad=1 stride=2,1").value();
  EXPECT_EQ(small.at("x").extents[2], 8);
  EXPECT_EQ(small.at("y").extents[2], 4);
  EXPECT_LT(small.at("y").extents[3], 100000);
  EXPECT_EQ(small.at("x").extents[3], small.at("y").extents[3]);
}

TEST(SmallerRequest, IsAlignedAsTheLargeOneIs) {
  EXPECT_EQ(smaller_key("conv_forward x=f16:1x64x224x224:nhwc@4 w=f16:64x64x3x3 pad=1"),
            key_of("conv_forward x=f16:1x64x16x224:nhwc@4 w=f16:64x64x3x3 pad=1"));
}

TEST(SmallerRequest, HasSomethingOfTheImageWherePaddingHasWindowsOfItsOwn) {
  EXPECT_EQ(smaller_key("conv_forward x=f32:1x512x256x256 w=f32:512x512x3x3 pad=20,1"),
            key_of("conv_forward x=f32:1x512x1x2 w=f32:512x512x3x3 pad=20,1"))
      << "38 rows of outputs, and no column, are windows over padding alone";
}

TEST(SmallerRequest, OfASmallerImageKeepsGapsBetweenRows) {
  const Request large =
      Request::parse("conv_forward x=f16:1x64x224x224:4000000,1,16384,64 w=f16:64x64x3x3 pad=1 epilogue=relu");
  const Request small = smaller_request(large, {}).value();
  EXPECT_EQ(small.at("x").strides, large.at("x").strides);
  EXPECT_EQ(small.at("y").order(), large.at("y").order());
  EXPECT_EQ(Request::parse(small.key()), small);
}

TEST(SmallerRequest, HasAsManyRowsLessOfWhatIsAddedToTheResult) {
  EXPECT_EQ(smaller_key("conv_backward_data dy=f32:1x64x112x112 w=f32:64x64x4x4 dx=f32:1x64x224x224 pad=1 stride=2 "
                        "epilogue=bias+add"),
            key_of("conv_backward_data dy=f32:1x64x32x112 w=f32:64x64x4x4 dx=f32:1x64x64x224 pad=1 stride=2 "
                   "epilogue=bias+add"))
      << "the result is the image here";
  const std::string conv = "conv_forward x=f32:1x64x225x224 w=f32:64x64x3x3 pad=1 epilogue=user:";
  const std::string digest(32, 'e');
  EXPECT_EQ(smaller_key(conv + digest +
                        " epilogue.a=f32:1x64x225x224 epilogue.b=f32:1x1x225x1 epilogue.c=f32:64 "
                        "epilogue.d=f32:1x64x1x224"),
            key_of("conv_forward x=f32:1x64x17x224 w=f32:64x64x3x3 pad=1 epilogue=user:" + digest +
                   " epilogue.a=f32:1x64x17x224 epilogue.b=f32:1x1x17x1 epilogue.c=f32:64 epilogue.d=f32:1x64x1x224"))
      << "the last repeats: it has one row for all";
  EXPECT_EQ(smaller_key("conv_backward_filter x=f32:1x64x225x224 dy=f32:1x64x225x224 dw=f32:64x64x3x3 pad=1 "
                        "epilogue=user:" +
                        digest + " epilogue.a=f32:64x64x3x3"),
            key_of("conv_backward_filter x=f32:1x64x17x224 dy=f32:1x64x17x224 dw=f32:64x64x3x3 pad=1 "
                   "epilogue=user:" +
                   digest + " epilogue.a=f32:64x64x3x3"))
      << "the result is a filter";
}

TEST(SmallerRequest, OfUnpoolingHasFewerRowsOfThePooledImage) {
  EXPECT_EQ(smaller_key("unpool_backward dy=f32:1x64x1024x512 indices=i32:1x64x512x256 window=2 stride=2"),
            key_of("unpool_backward dy=f32:1x64x192x512 indices=i32:1x64x96x256 window=2 stride=2"));
}

TEST(SmallerRequest, IsNoneWhereAnAttributeTellsTheBatch) {
  EXPECT_FALSE(smaller("tensor_transform x=f32:64x64x56x56 y=f32:66x64x56x56 pad=1,0,0,0,1,0,0,0"));
}

class StandIn : public testing::TestWithParam<const char*> {};

TEST_P(StandIn, IsServedByWhateverMayServeTheLargeRequest) {
  const Request large = Request::parse(GetParam());
  const Request small = smaller_request(large, {}).value();
  const auto read_bytes = [](const Request& request) { return operation(request.operation).work(request).read_bytes; };
  EXPECT_LT(read_bytes(small), read_bytes(large));
  const Target target = target_of(8, 0);
  const Catalogue& catalogue = built_in_catalogue();
  int choices = 0;
  for (const Algorithm& algorithm : catalogue.algorithms()) {
    const BoundAlgorithm on_large = algorithm.on(large, target), on_small = algorithm.on(small, target);
    if (on_large.refusal()) continue;
    EXPECT_FALSE(on_small.refusal()) << algorithm.name() << ": " << *on_small.refusal();
    on_large.for_each_legal([&](const Config& config) {
      const auto refusal = on_small.refusal(config, Rules::necessary);
      EXPECT_FALSE(refusal) << algorithm.name() << ": " << *refusal;
      ++choices;
      return !refusal;
    });
  }
  EXPECT_GT(choices, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Large, StandIn,
    testing::Values(
        "conv_forward x=f16:256x3x224x224 w=f16:64x3x7x7 stride=2 pad=3 epilogue=bias+relu",
        "conv_forward x=f16:256x512x7x7:nhwc w=f16:512x512x3x3 pad=1 epilogue=bias+add+relu",
        "conv_forward x=f32:37x128x28x28 w=f32:128x128x3x3 pad=1 constant_weights fast",
        "conv_forward x=f32:200x96x28x28 w=f32:96x1x3x3 pad=1 groups=96",
        "conv_forward x=f16:200x96x56x56:nhwc w=f16:96x1x5x5 pad=2 groups=96 stride=2",
        "conv_forward x=bf16:128x256x14x14:nhwc w=bf16:256x256x3x3 pad=1 n=?",
        "conv_backward_data dy=f32:100x64x28x28 w=f32:64x64x3x3 pad=1",
        "conv_backward_filter x=f32:128x64x28x28 dy=f32:128x64x28x28 dw=f32:64x64x3x3 pad=1",
        "conv_backward_filter x=f16:256x3x112x112 dy=f16:256x32x56x56 dw=f16:32x3x3x3 pad=1 stride=2",
        "conv_forward x=f16:1x64x224x224:nhwc w=f16:64x64x3x3 pad=1",
        "conv_forward x=f32:1x64x224x224 w=f32:64x64x3x3 pad=1",
        "conv_forward x=f32:1x512x160x480 w=f32:512x1x7x7 pad=3 stride=2 groups=512",
        "conv_backward_data dy=f32:1x128x80x80 w=f32:128x64x3x3 dx=f32:1x64x160x160 pad=1 stride=2",
        "conv_backward_data dy=bf16:2x64x224x224:nhwc w=bf16:64x64x3x3 pad=1",
        "conv_backward_filter x=f16:1x64x224x224:nhwc dy=f16:1x64x224x224:nhwc dw=f16:64x64x3x3 pad=1",
        "conv_backward_filter x=f32:256x128x80x80 dy=f32:256x256x40x40 dw=f32:256x128x3x3 pad=1 stride=2",
        "pool_forward x=f32:1x64x1024x1024 mode=max window=3 stride=2 pad=1",
        "conv_forward x=f32:1x512x256x256 w=f32:512x512x3x3 pad=2",
        "conv_backward_data dy=f32:64x96x1024x1333:nhwc w=f32:96x1x2x2 dx=f32:64x96x3072x4000:nhwc stride=3 "
        "groups=96",
        "pool_forward x=f32:1x512x1023x4000 mode=max window=3 stride=2 pad=1",
        "unpool_backward dy=f32:1x64x1024x512 indices=i32:1x64x512x256 window=2 stride=2",
        "conv_backward_bias dy=f16:256x64x56x56:nhwc", "gemm a=f16:8192x512 b=f16:512x1000 epilogue=bias",
        "gemm a=f32:10001x512 b=f32:512x333", "pool_forward x=f16:256x64x112x112:nhwc mode=max window=3 stride=2 pad=1",
        "pool_forward x=f32:256x512x7x7 mode=avg window=7",
        "pool_backward dy=f32:64x64x28x28 dx=f32:64x64x56x56 mode=avg window=2 stride=2",
        "softmax_forward x=f16:16384x1000 axis=1", "norm_forward x=f32:256x64x56x56 axes=0,2,3",
        "norm_inference x=f16:256x64x56x56:nhwc axes=0,2,3", "activation_forward x=f16:256x64x56x56 mode=relu",
        "reduce x=f32:40960x1000 mode=add axes=0", "dropout x=f16:4096x4096"));

}  // namespace
}  // namespace kiln::checking::stand_in_test
