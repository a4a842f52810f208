// Requests that CUTLASS has no kernel for are refused with the reason, and its own list of tiles is read.
#include "cutlass_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "comparison.h"
#include "kiln/base/error.h"

namespace kiln::bench::cutlass_source_test {
namespace {

using testing::HasSubstr;

const CutlassChoice choice{.tile = {{64, 64, 32}, {32, 32, 32}, {16, 8, 16}, 3}};

std::string refusal(const std::string& line, const CutlassChoice& how = choice) {
  try {
    return cutlass_source(Request::parse(line), Arch::of(8, 0), how).text;
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(CutlassSource, RefusesWhatCutlassHasNoKernelFor) {
  EXPECT_THAT(refusal("conv_forward x=f16:1x8x5x5:nhwc w=f16:8x4x3x3:nhwc groups=2"), HasSubstr("it has groups"));
  EXPECT_THAT(refusal("conv_forward x=f16:1x8x5x5:nchw w=f16:8x8x3x3:nhwc"), HasSubstr("channels are not innermost"));
  EXPECT_THAT(refusal("conv_forward x=f16:1x8x5x5:nhwc w=f16:8x8x3x3:nhwc mode=convolution"), HasSubstr("mirrors"));
  EXPECT_THAT(refusal("conv_forward x=f16:1x8x5x5:nhwc w=f16:8x8x3x3:nhwc epilogue=relu"), HasSubstr("an epilogue"));
  EXPECT_THAT(refusal("conv_forward x=f16:1x8x5:ncw w=f16:8x8x3:ncw"), HasSubstr("not two-dimensional"));
  EXPECT_THAT(refusal("conv_forward x=f16:1x8x5x5:nhwc w=f16:8x8x3x3:nhwc y=f16:1x8x3x3:999,1,32,8"),
              HasSubstr("gaps between rows of pixels"));
  EXPECT_THAT(refusal("conv_backward_filter x=f16:1x8x5x5:nhwc dy=f16:1x8x3x3:nhwc dw=f16:8x8x3x3:288,1,32,8"),
              HasSubstr("filters have gaps"));
  CutlassChoice split = choice;
  split.slices = 2;
  EXPECT_THAT(refusal("conv_backward_data dy=f16:1x8x3x3:nhwc w=f16:8x8x3x3:nhwc stride=2", split),
              HasSubstr("a strided gradient cannot be split"));
  EXPECT_THAT(refusal("gemm a=f16:2x8x8 b=f16:2x8x8 c=f16:2x8x8"), HasSubstr("a batch of products"));
  EXPECT_THAT(refusal("softmax_forward x=f32:3x7:nc"), HasSubstr("neither a convolution nor a product"));
}

TEST(CutlassSource, HasTheWidestAccessThatRowsAllow) {
  const auto of = [](const char* x, const char* w) {
    return refusal(std::string("conv_forward x=f16:") + x + " w=f16:" + w);
  };
  EXPECT_THAT(of("1x24x5x5:nhwc", "8x24x3x3:nhwc"), HasSubstr("PEER_ALIGN_A 8\n#define PEER_ALIGN_B 8"));
  EXPECT_THAT(of("1x12x5x5:nhwc", "8x12x3x3:nhwc"), HasSubstr("PEER_ALIGN_A 4\n#define PEER_ALIGN_B 4"));
  EXPECT_THAT(of("1x8x5x5:nhwc@4", "8x8x3x3:nhwc"), HasSubstr("PEER_ALIGN_A 2\n#define PEER_ALIGN_B 8"));
}

// Orders that CUTLASS's generator gives: they decide what concurrent blocks share.
TEST(CutlassSource, HasTheOrderOfBlocksOfTheGenerator) {
  EXPECT_THAT(refusal("gemm a=f16:512x512 b=f16:512x512 c=f16:512x512"),
              HasSubstr("gemm::threadblock::GemmIdentityThreadblockSwizzle<8>"));
  EXPECT_THAT(refusal("conv_forward x=f16:1x8x5x5:nhwc w=f16:8x8x3x3:nhwc"),
              HasSubstr("gemm::threadblock::GemmIdentityThreadblockSwizzle<4>"));
  EXPECT_THAT(refusal("conv_backward_data dy=f16:1x8x3x3:nhwc w=f16:8x8x3x3:nhwc"),
              HasSubstr("gemm::threadblock::GemmIdentityThreadblockSwizzle<4>"));
  EXPECT_THAT(refusal("conv_backward_data dy=f16:1x8x3x3:nhwc w=f16:8x8x3x3:nhwc stride=2"),
              HasSubstr("conv::threadblock::StridedDgradIdentityThreadblockSwizzle<1>"));
}

// Sparse products are in the generator's list too, by instructions of twice the depth.
TEST(CutlassTiles, AreThoseOfDenseProducts) {
  std::vector<CutlassTile> tiles;
  try {
    tiles = cutlass_tiles(Request::parse("gemm a=bf16:64x64 b=bf16:64x64"), Arch::of(8, 0));
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  EXPECT_FALSE(tiles.empty());
  for (const CutlassTile& tile : tiles) EXPECT_EQ(tile.instruction, (std::array{16, 8, 16}));
}

TEST(CutlassTiles, HaveNamesWithAndWithoutStages) {
  EXPECT_TRUE(is_among(choice.tile, {"128x128x32", "64x64x32"}));
  EXPECT_TRUE(is_among(choice.tile, {"64x64x32x3"}));
  EXPECT_FALSE(is_among(choice.tile, {"64x64x32x4", "64x64x64", "64x64"}));
  EXPECT_FALSE(is_among(choice.tile, {}));
}

TEST(CutlassTiles, AreThoseOfTypeAndComputeCapability) {
  const auto tiles = [](const char* line, int major, int minor) {
    return cutlass_tiles(Request::parse(line), Arch::of(major, minor));
  };
  const char* const layer = "conv_forward x=f16:1x8x5x5:nhwc w=f16:8x8x3x3:nhwc";
  try {
    EXPECT_EQ(tiles(layer, 8, 0).size(), 22u);
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  EXPECT_EQ(tiles(layer, 8, 9).size(), 22u);
  EXPECT_EQ(tiles(layer, 7, 5).size(), 9u);
  EXPECT_EQ(tiles(layer, 7, 5).front().instruction, (std::array{16, 8, 8}));
  EXPECT_THROW(tiles("gemm a=f32:8x8 b=f32:8x8 c=f32:8x8", 8, 0), Error);
  EXPECT_FALSE(tiles("gemm a=f32:8x8 b=f32:8x8 c=f32:8x8 tf32", 8, 0).empty());
}

}  // namespace
}  // namespace kiln::bench::cutlass_source_test
