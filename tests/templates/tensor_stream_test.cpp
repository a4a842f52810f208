// Sums on tensor cores whose chunks blocks share evenly (BLOCKS), with any number of blocks.
#include "contraction/tensor_stream.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "algorithm_cases.h"
#include "conv/conv_contractions.h"
#include "gemm/gemm_contraction.h"
#include "variant_check.h"

namespace kiln::testing_support::tensor_stream_test {
namespace {

using descriptor::Bring;
using descriptor::SharedTiling;

struct StreamCase {
  std::string name, algorithm;
  descriptor::ContractionMaker make;
  std::string request;
  SharedTiling tiling;
  Bring bring = Bring::copied;
};

void PrintTo(const StreamCase& one, std::ostream* out) {
  *out << one.algorithm << ": " << one.request;
}

SharedTiling tiles(int block_m, int block_n, int block_k, int stages) {
  SharedTiling tiling{};
  tiling.block_m = block_m;
  tiling.block_n = block_n;
  tiling.block_k = block_k;
  tiling.warp_m = tiling.warp_n = 32;
  tiling.stages = stages;
  tiling.split_k = 1;
  return tiling;
}

class TensorStream : public testing::TestWithParam<StreamCase> {
 protected:
  static Program program_with(int blocks) {
    const StreamCase& one = GetParam();
    const Request request = Request::parse(one.request);
    SharedTiling tiling = one.tiling;
    tiling.blocks = blocks;
    const Catalogue& catalogue = built_in_catalogue();
    const Emitter emit(catalogue.library(), request, catalogue.find(one.algorithm)->template_path(), one.name,
                       Offsets::fitting);
    Program program = descriptor::TensorStream(one.algorithm, one.bring)
                          .program(tiling, one.make(request), TestDevice::get().target, emit);
    program.workspace_bytes = workspace_end(program.steps);
    return program;
  }
};

// One block meets all tiles; a few meet several each, or a part of one; many have nothing to do.
TEST_P(TensorStream, IsRightWithAnyNumberOfBlocks) {
  VariantChecker checker(built_in_catalogue(), Request::parse(GetParam().request), thorough());
  for (const int blocks : {1, 2, 3, 7, 40, 320}) {
    EXPECT_TRUE(checker.matches_reference(program_with(blocks), "with " + std::to_string(blocks) + " blocks"));
  }
}

const SharedTiling usual = tiles(32, 64, 32, 2), long_chunks = tiles(64, 32, 64, 3);
const char* const data = "conv_backward_data_tensor_splitk";
const char* const filter = "conv_backward_filter_tensor_splitk";

INSTANTIATE_TEST_SUITE_P(
    All, TensorStream,
    testing::Values(
        StreamCase{"Forward", "conv_tensor_splitk", descriptor::forward_products,
                   "conv_forward x=f16:1x72x7x9:nhwc w=f16:72x72x3x3:nhwc pad=1 epilogue=bias+relu", usual},
        StreamCase{"ForwardToNchw", "conv_tensor_splitk", descriptor::forward_products,
                   "conv_forward x=bf16:2x136x5x5:nhwc w=bf16:40x136x3x3:nhwc y=f32:2x40x3x3 epilogue=add beta=any",
                   long_chunks},
        StreamCase{"Groups", "conv_tensor_splitk", descriptor::forward_products,
                   "conv_forward x=f16:1x192x6x7:nhwc w=f16:72x64x3x3:nhwc groups=3 pad=1", usual},
        StreamCase{"AnyBatch", "conv_tensor_splitk", descriptor::forward_products,
                   "conv_forward x=bf16:4x72x5x4:nhwc w=bf16:40x72x3x3:nhwc pad=1 n=?", usual},
        StreamCase{"Tf32", "conv_tensor_splitk", descriptor::forward_products,
                   "conv_forward x=f32:1x44x5x7:nhwc w=f32:68x44x3x3:nhwc pad=1 tf32", tiles(32, 64, 16, 3)},
        StreamCase{"DataGradient", data, descriptor::data_contractions,
                   "conv_backward_data dy=f16:1x136x5x7:nhwc w=f16:136x68x3x3:nhwc pad=1", usual},
        StreamCase{"FourClasses", data, descriptor::data_contractions,
                   "conv_backward_data dy=bf16:2x136x5x4:nhwc w=bf16:136x40x3x3:nhwc dx=bf16:2x40x9x8:nhwc pad=1 "
                   "stride=2 epilogue=bias",
                   usual},
        StreamCase{"ClassesWithoutTaps", data, descriptor::data_contractions,
                   "conv_backward_data dy=f16:1x264x5x4:nhwc w=f16:264x40x1x1 dx=f16:1x40x9x7:nhwc stride=2 beta=any",
                   usual},
        StreamCase{"FilterGradient", filter, descriptor::filter_contractions,
                   "conv_backward_filter x=f16:9x24x9x7:nhwc dy=f16:9x72x9x7:nhwc dw=f32:72x24x3x3:nhwc pad=1", usual},
        StreamCase{"FilterGradientToNchw", filter, descriptor::filter_contractions,
                   "conv_backward_filter x=bf16:40x66x5x3:nhwc dy=bf16:40x34x3x2:nhwc dw=bf16:34x66x3x2 pad=1,0 "
                   "stride=2,1 beta=any",
                   long_chunks},
        StreamCase{"Staged", "conv_tensor_staged_splitk", descriptor::forward_products,
                   "conv_forward x=f16:2x72x7x9 w=f16:72x72x3x3 pad=1 epilogue=bias+relu", usual, Bring::staged},
        StreamCase{"StagedFourClasses", "conv_backward_data_tensor_staged_splitk", descriptor::data_contractions,
                   "conv_backward_data dy=bf16:2x136x5x4 w=bf16:136x40x3x3 dx=bf16:2x40x9x8 pad=1 stride=2", usual,
                   Bring::staged},
        StreamCase{"StagedFilterGradient", "conv_backward_filter_tensor_staged_splitk", descriptor::filter_contractions,
                   "conv_backward_filter x=f16:9x12x9x8 dy=f16:9x36x9x8 dw=f16:36x12x3x3 pad=1", usual, Bring::staged},
        StreamCase{"Product", "gemm_tensor_splitk", descriptor::gemm_contractions,
                   "gemm a=f16:66x300 b=f16:300x72 epilogue=bias beta=any", usual},
        StreamCase{"Products", "gemm_tensor_splitk", descriptor::gemm_contractions,
                   "gemm a=bf16:2x3x34x600 b=bf16:1x3x600x40:72000,24000,1,600", usual},
        StreamCase{"ProductToColumns", "gemm_tensor_splitk", descriptor::gemm_contractions,
                   "gemm a=f16:37x520 b=f16:520x40 c=f32:37x40:1,40", long_chunks}),
    [](const testing::TestParamInfo<StreamCase>& one) { return one.param.name; });

std::string refusal(const std::string& algorithm, const std::string& request, int blocks, Rules rules = Rules::all) {
  const std::string tiling =
      "BLOCK_K=32,BLOCK_M=32,BLOCK_N=64,BLOCKS=" + std::to_string(blocks) + ",SPLIT_K=1,STAGES=2,WARP_M=32,WARP_N=32";
  const std::string why = built_in_catalogue()
                              .find(algorithm)
                              ->on(Request::parse(request), TestDevice::get().target)
                              .refusal(Config::parse(tiling), rules)
                              .value_or("none");
  return why.substr(0, why.find(" ("));
}

TEST(TensorStreamRules, KeepOutWhatCannotPay) {
  const std::string pruned = "splitting is worthwhile";
  EXPECT_EQ(refusal("gemm_tensor_splitk", "gemm a=f16:66x1280 b=f16:1280x72", 40), "none");
  EXPECT_EQ(refusal("gemm_tensor_splitk", "gemm a=f16:66x1216 b=f16:1216x72", 40), pruned) << "38 chunks of 6 tiles";
  EXPECT_EQ(refusal("gemm_tensor_splitk", "gemm a=f16:256x1280 b=f16:1280x320", 40), pruned) << "40 tiles";
}

TEST(TensorStreamRules, ClassesHaveOneLaunch) {
  const std::string classes =
      "conv_backward_data dy=f16:1x1032x18x18:nhwc w=f16:1032x40x5x5:nhwc dx=f16:1x40x90x90:nhwc stride=5 "
      "mode=convolution";  // else phases become channels
  EXPECT_EQ(refusal(data, classes, 40, Rules::necessary), "the parts fit into a gigabyte and a grid") << "25 of them";
}

}  // namespace
}  // namespace kiln::testing_support::tensor_stream_test
