// The default configuration of every algorithm for matrix products against the reference, on products that are awkward
// in one way each; pairwise covers of the configurations; 64-bit offsets.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::gemm_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"gemm_simple"};
const Names tiles = {"gemm_simple", "gemm_tiled"};
const Names splits = {"gemm_simple", "gemm_tiled", "gemm_splitk"};
const Names thin = {"gemm_simple", "gemm_tiled", "gemm_thin"};
const Names all = {"gemm_simple", "gemm_tiled", "gemm_splitk", "gemm_thin"};
const Names long_thin = {"gemm_thin", "gemm_thin_splitk"};

class Gemm : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(Gemm, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Products, Gemm,
    testing::Values(
        AlgorithmCase{"SingleElement", "gemm a=f32:1x1 b=f32:1x1", thin},
        AlgorithmCase{"Primes", "gemm a=f32:37x29 b=f32:29x41", splits},
        AlgorithmCase{"Vectors", "gemm a=f16:72x40 b=f16:40x96 c=f16:72x96", splits},
        // a or b transposed: every combination of what stands side by side.
        AlgorithmCase{"BTransposed", "gemm a=f32:36x44 b=f32:44x40:1,44 n=? epilogue=bias+relu", splits},
        AlgorithmCase{"BothTransposed", "gemm a=bf16:40x48:1,40 b=bf16:48x72:1,48 c=bf16:40x72", splits},
        AlgorithmCase{"CTransposed", "gemm a=f32:36x44:1,36 b=f32:44x40 c=f32:36x40:1,36 beta=any", splits},
        AlgorithmCase{"OddPitches", "gemm a=f32:33x35:37,1@4 b=f32:35x34:39,1@4 c=f32:33x34:41,1@4 alpha=any beta=1",
                      splits},
        AlgorithmCase{"NothingSideBySide", "gemm a=f32:19x35:140,3 b=f32:35x21:5,200 c=f32:19x21:2,50", splits},
        AlgorithmCase{"MixedTypes", "gemm a=f16:34x40 b=f32:40x36 c=bf16:34x36 alpha=any beta=any", splits},
        AlgorithmCase{"Stages",
                      "gemm a=f32:34x20 b=f32:20x38 c=f32:34x38 bias=f16:38:2@2 residual=f16:34x38:1,36 "
                      "epilogue=bias+add+clip",
                      tiles},
        AlgorithmCase{"BroadcastB", "gemm a=f16:2x3x33x24 b=f16:1x3x24x40 c=f16:2x3x33x40", tiles},
        AlgorithmCase{"BroadcastA", "gemm a=f32:1x18x24 b=f32:5x24x20", tiles},
        AlgorithmCase{
            "ThreeBatchDimensions",
            "gemm a=f32:2x1x3x17x20 b=f32:1x2x3x20x9 c=f32:2x2x3x17x9:2000,1000,1,60,3 residual=f32:2x2x3x17x9 "
            "epilogue=add",
            tiles},
        AlgorithmCase{"VectorTimesMatrix", "gemm a=bf16:1x200 b=bf16:200x68 epilogue=bias", all},
        AlgorithmCase{"VectorTimesMatrixAlongK", "gemm a=f16:1x264 b=f16:264x19:1,264 c=f16:1x19 epilogue=bias", all},
        AlgorithmCase{"MatrixTimesVectors", "gemm a=f32:67x129 b=f32:129x3 epilogue=bias+add residual=f32:67x3:1,67",
                      all},
        AlgorithmCase{"MatrixTimesVectorAcross", "gemm a=bf16:72x50:1,72 b=bf16:50x1 c=f32:72x1 alpha=any beta=any",
                      all},
        AlgorithmCase{"BatchOfThinOnes", "gemm a=f32:2x3x2x40 b=f32:1x3x40x36 epilogue=bias+relu", all},
        AlgorithmCase{"DotProduct", "gemm a=f32:1x300 b=f32:300x1", all},
        AlgorithmCase{"LongDotProduct", "gemm a=f32:1x5003 b=f32:5003x1 alpha=any beta=any", long_thin},
        AlgorithmCase{"LongDotProducts", "gemm a=bf16:3x2x4096 b=bf16:3x4096x1 epilogue=bias", long_thin},
        AlgorithmCase{"LongVectorTimesMatrix", "gemm a=bf16:1x1203 b=bf16:1203x41:44,1 epilogue=bias+relu", long_thin},
        AlgorithmCase{"LongMatrixTimesVectorsInRegions",
                      "gemm a=f16:5x2112:2200,1@8 b=f16:2112x3:1,2304@8 c=f32:5x3:1,9 residual=f32:5x3 epilogue=add",
                      long_thin},
        AlgorithmCase{"LongInRegions", "gemm a=bf16:7x1500:2,20 b=bf16:1500x4:10,2 c=bf16:7x4:12,3 beta=1", long_thin},
        AlgorithmCase{"LongOfF32InRegions", "gemm a=f32:2x1500:2,20 b=f32:1500x64:80,1@4 c=f32:2x64:1,5", long_thin},
        AlgorithmCase{"OuterProduct", "gemm a=f32:40x1 b=f32:1x36", tiles},
        AlgorithmCase{"DynamicBatchOfColumns", "gemm a=f16:16x24:1,16 b=f16:24x40 c=f16:16x40:1,16 n=? beta=1", tiles},
        AlgorithmCase{"NoRows", "gemm a=f32:0x16 b=f32:16x12", trusted},
        AlgorithmCase{"NoColumns", "gemm a=f32:3x7 b=f32:7x0", trusted},
        AlgorithmCase{"NoProducts", "gemm a=f32:3x0 b=f32:0x12 beta=any epilogue=bias", trusted},
        AlgorithmCase{"EmptyBatch", "gemm a=f32:0x3x4 b=f32:1x4x5", trusted},
        AlgorithmCase{"AlphaZero", "gemm a=f32:9x7 b=f32:7x12 alpha=0 beta=any", trusted}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    GemmConfigs, PairwiseMatch,
    testing::Values(cover("gemm_simple", "gemm a=f16:7x5 b=f16:5x9:1,8 beta=any"),
                    cover("gemm_tiled", "gemm a=f16:3x20x24 b=f16:1x24x24 c=f16:3x20x24"),
                    cover("gemm_splitk", "gemm a=f32:5x136 b=f32:136x33 epilogue=bias"),
                    cover("gemm_simple", "gemm a=f32:2x7x5 b=f32:1x5x9 epilogue=bias"),
                    cover("gemm_tiled", "gemm a=f32:70x37:1,72 b=f32:37x66:68,1 epilogue=bias+add"),
                    cover("gemm_splitk", "gemm a=f16:2x35x264 b=f16:2x264x36:9504,1,264 c=f16:2x35x36"),
                    cover("gemm_thin", "gemm a=f16:2x3x136 b=f16:2x136x72 c=f16:2x3x72 epilogue=bias"),
                    cover("gemm_thin_splitk", "gemm a=f16:2x3x1224 b=f16:2x1224x72 c=f16:2x3x72 epilogue=bias"),
                    cover("gemm_thin_splitk", "gemm a=f32:7x8452 b=f32:8452x5 beta=any"),
                    cover("gemm_thin", "gemm a=f32:67x144 b=f32:144x5 beta=any")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(GemmWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(all,
                                              "gemm a=f32:3x5x70 b=f32:3x70x36 c=f32:3x5x36 epilogue=bias+add+relu"),
                                         wide({"gemm_thin_splitk"}, "gemm a=f16:3x2x700 b=f16:3x700x36")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::gemm_test
