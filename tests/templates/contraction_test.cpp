// Contractions answer in the words of a matrix product, whatever they were made of.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "contraction/contractions.h"
#include "contraction/split_product.h"
#include "conv/conv_contractions.h"
#include "gemm/gemm_contraction.h"
#include "kiln/generator/request.h"

namespace kiln::contraction_test {
namespace {

using descriptor::Along;
using descriptor::Contraction;
using descriptor::Contractions;

Contractions contractions(const std::string& line) {
  const Request request = Request::parse(line);
  if (line.starts_with("gemm")) return descriptor::gemm_contractions(request);
  if (line.find("backward_data") != std::string::npos) return descriptor::data_contractions(request);
  if (line.find("backward_filter") != std::string::npos) return descriptor::filter_contractions(request);
  return descriptor::forward_contractions(request);
}

Contraction contraction(const std::string& line) {
  const Contractions parts = contractions(line);
  EXPECT_EQ(parts.list.size(), 1u) << line;
  return parts.main();
}

TEST(Contraction, OfMatricesHasTheirExtents) {
  const Contraction product = contraction("gemm a=f32:5x48x64 b=f32:5x64x32");
  EXPECT_EQ(product.rows(), 48);
  EXPECT_EQ(product.columns(), 32);
  EXPECT_EQ(product.depth(), 64);
  EXPECT_EQ(product.row_tiles(32), 2);
  EXPECT_EQ(product.column_tiles(32), 1);
  EXPECT_EQ(product.chunks(16), 4);
  EXPECT_EQ(product.groups(), 1);
  EXPECT_EQ(product.products(), 5);
  EXPECT_EQ(product.divisions(), 1);
  EXPECT_EQ(product.a_repeats(), 1);
  EXPECT_EQ(product.a_bytes(), 5 * 48 * 64 * 4);
  EXPECT_EQ(product.b_bytes(), 5 * 64 * 32 * 4);
  EXPECT_EQ(product.c_bytes(), 5 * 48 * 32 * 4);
  EXPECT_EQ(product.residual_bytes(), 0);
}

TEST(Contraction, SharedByAllProductsCountsItsBytesOnce) {
  EXPECT_EQ(contraction("gemm a=f32:5x48x64 b=f32:1x64x32").b_bytes(), 64 * 32 * 4);
}

TEST(Contraction, OfADynamicBatchHasRowsForEachN) {
  const Contraction product = contraction("gemm a=f32:48x64 b=f32:64x32 n=?");
  EXPECT_TRUE(product.dynamic_batch());
  EXPECT_EQ(product.rows_per_n(), 1);
  EXPECT_GE(product.rows(), 48);
}

TEST(Contraction, SaysHowMatricesRunInMemory) {
  const Contraction rows = contraction("gemm a=f16:48x64 b=f16:64x32");
  EXPECT_EQ(rows.a_along(), Along::depth);
  EXPECT_EQ(rows.b_along(), Along::columns);
  EXPECT_EQ(rows.c_along(), Along::columns);
  EXPECT_EQ(rows.period(), 64) << "a chunk is neighbours of one row";
  EXPECT_EQ(rows.a_pitch(), 1);
  EXPECT_EQ(rows.a_run(32), 8);
  EXPECT_EQ(rows.a_run(4), 4);
  EXPECT_EQ(rows.a_run(9), 1) << "divides what it is asked for";
  EXPECT_EQ(rows.b_run(8), 8);
  EXPECT_EQ(rows.c_run(4), 4);

  const Contraction transposed = contraction("gemm a=f16:48x64:1,48 b=f16:64x32:1,64 c=f16:48x32:1,48");
  EXPECT_EQ(transposed.a_along(), Along::rows);
  EXPECT_FALSE(transposed.a_is_gathered());
  EXPECT_EQ(transposed.b_along(), Along::depth);
  EXPECT_EQ(transposed.c_along(), Along::rows);
  EXPECT_EQ(transposed.a_run(8), 8);
  EXPECT_EQ(transposed.b_run(16), 8);
}

TEST(Contraction, OfAConvolutionHasTheElementsOfAFilterAsDepth) {
  const std::string shape = "conv_forward x=f32:2x16x10x12:LAYOUT w=f32:24x8x3x3:LAYOUT pad=1 groups=2";
  const auto in = [&](const std::string& layout) {
    std::string line = shape;
    for (size_t at; (at = line.find("LAYOUT")) != std::string::npos;) line.replace(at, 6, layout);
    return contraction(line);
  };
  const Contraction nchw = in("nchw"), nhwc = in("nhwc");
  for (const Contraction& product : {nchw, nhwc}) {
    EXPECT_EQ(product.rows(), 2 * 10 * 12);
    EXPECT_EQ(product.columns(), 12);
    EXPECT_EQ(product.groups(), 2);
    EXPECT_EQ(product.column_tiles(8), 2 * 2);
    EXPECT_EQ(product.depth(), 8 * 9);
    EXPECT_EQ(product.a_repeats(), 9);
    EXPECT_EQ(product.a_bytes(), 2 * 16 * 10 * 12 * 4) << "in memory";
  }
  EXPECT_TRUE(nchw.a_is_gathered());
  EXPECT_EQ(nchw.a_run(8), 1);
  EXPECT_EQ(nchw.period(), 9);
  EXPECT_EQ(nchw.chunks(16), 5) << "72 elements";
  EXPECT_EQ(nchw.c_along(), Along::rows);
  EXPECT_FALSE(nhwc.a_is_gathered());
  EXPECT_EQ(nhwc.a_run(16), 4);
  EXPECT_EQ(nhwc.period(), 8);
  EXPECT_EQ(nhwc.chunks(16), 9) << "chunks end with a period";
  EXPECT_EQ(nhwc.c_along(), Along::columns);
}

TEST(Contraction, OfAFilterGradientHasAllOutputsAsDepth) {
  const Contraction product =
      contraction("conv_backward_filter x=f32:2x8x10x12 dy=f32:2x24x10x12 dw=f32:24x8x3x3 pad=1");
  EXPECT_EQ(product.rows(), 8 * 3 * 3);
  EXPECT_EQ(product.columns(), 24);
  EXPECT_EQ(product.depth(), 2 * 10 * 12);
}

TEST(Contractions, OfAStridedGradientShareItsRows) {
  const Contractions parts =
      contractions("conv_backward_data dy=f32:2x24x5x7 w=f32:24x8x1x3 dx=f32:2x8x10x13 pad=0,1 stride=2");
  ASSERT_EQ(parts.list.size(), 4u);
  int64_t rows = 0, empty = 0;
  for (const Contraction& part : parts.list) {
    rows += part.rows();
    empty += part.multiplies() ? 0 : 1;
    EXPECT_LE(part.depth(), parts.main().depth());
  }
  EXPECT_EQ(rows, 2 * 10 * 13);
  EXPECT_EQ(empty, 2) << "every other line of dx meets no tap";
  EXPECT_TRUE(parts.main().multiplies());
}

TEST(Contraction, OfALocalConvolutionIsDividedIntoRegions) {
  const Contraction product = contraction("local_conv_forward x=f32:2x4x6x5 w=f32:32x4x3x3 pad=1 grid=4,1");
  EXPECT_EQ(product.divisions(), 4);
  EXPECT_EQ(product.division_rows(), 2 * 5) << "of the region with the most rows of y";
  EXPECT_EQ(product.row_tiles(16), 4 * 2) << "2 x 10 rows take two tiles";
  EXPECT_EQ(product.columns(), 8);
  EXPECT_EQ(product.b_bytes(), 32 * 4 * 9 * 4);
}

TEST(Contraction, OfTheGradientOfALocalConvolutionIsDividedIntoSegments) {
  const Contraction product = contraction("local_conv_backward_data dy=f32:2x8x6x5 w=f32:16x4x3x1 pad=1,0 grid=2,1");
  EXPECT_EQ(product.divisions(), 6) << "cut where one of three taps meets another region or none";
  EXPECT_EQ(product.division_rows(), 5);
  EXPECT_EQ(product.row_tiles(32), 6);
  EXPECT_GT(product.b_spread(), 1);
}

// Filters of 1x1 have one pixel each: in dw the channels of x stand side by side, as the images that they are here.
TEST(Contraction, OfAGradientByFiltersOf1x1StoresChannelsOfXSideBySide) {
  for (const char* layout : {"nhwc", "nchw"}) {
    const auto line = [&](const char* type) {
      return std::string("conv_backward_filter x=") + type + ":2x48x9x7:" + layout + " dy=" + type +
             ":2x40x9x7:" + layout + " dw=" + type + ":40x48x1x1:" + layout;
    };
    EXPECT_EQ(contraction(line("f16")).c_along(), Along::rows) << layout;
    EXPECT_EQ(contraction(line("f16")).c_run(8), 8) << layout;
    EXPECT_EQ(contraction(line("f32")).c_run(4), 4) << layout;
  }
  EXPECT_EQ(contraction("conv_backward_filter x=f16:2x12x9x7 dy=f16:2x40x9x7 dw=f16:40x12x1x1").c_run(8), 4);
  const Contraction pixel = contraction("conv_forward x=f16:16x32x1x1 w=f16:24x32x1x1");
  EXPECT_EQ(pixel.c_along(), Along::columns) << "channels of y are nearer than its images";
  const char* const transposed = "conv_forward x=f16:16x32x1x1 w=f16:24x32x1x1 y=f16:16x24x1x1:1,16,16,16";
  EXPECT_EQ(contraction(transposed).c_along(), Along::rows);
  EXPECT_EQ(contraction(transposed).c_run(8), 8);
  const Contraction dynamic = contraction(std::string(transposed) + " n=?");
  EXPECT_EQ(dynamic.c_along(), Along::columns) << "a batch may end within a run of images";
}

TEST(SplitProduct, AddsFewerElementsAThreadWhereBlocksWouldBeFew) {
  EXPECT_EQ(descriptor::added_run(8, int64_t{1} << 20, 128), 4);
  EXPECT_EQ(descriptor::added_run(8, 4096, 16), 2) << "128 blocks, not 64";
  EXPECT_EQ(descriptor::added_run(8, 1024, 128), 1);
  EXPECT_EQ(descriptor::added_run(2, int64_t{1} << 20, 128), 2) << "runs of c";
}

}  // namespace
}  // namespace kiln::contraction_test
