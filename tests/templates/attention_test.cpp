// Every algorithm for attention against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::attention_test {
namespace {

using Names = std::vector<std::string>;

// Algorithms of requests of few elements; of those of f16 or bf16 alone, in rows that begin at even numbers; of those
// of more than 128 elements, which all have; and of so many that nothing else fits.
const Names all = {"attention_simple", "attention_block"};
const Names halves = {"attention_simple", "attention_block", "attention_tensor"};
const Names large = {"attention_simple", "attention_block", "attention_wide_block"};
const Names large_halves = {"attention_simple", "attention_block", "attention_tensor", "attention_wide_block",
                            "attention_wide_tensor"};
const Names largest = {"attention_simple", "attention_wide_block"};
const Names largest_halves = {"attention_simple", "attention_wide_block", "attention_wide_tensor"};
const Names gradients = {"attention_backward_simple", "attention_backward_block"};
const Names gradients_of_halves = {"attention_backward_simple", "attention_backward_block",
                                   "attention_backward_tensor"};
const Names large_gradients = {"attention_backward_simple", "attention_backward_block",
                               "attention_backward_wide_block"};
const Names large_gradients_of_halves = {"attention_backward_simple", "attention_backward_block",
                                         "attention_backward_tensor", "attention_backward_wide_block",
                                         "attention_backward_wide_tensor"};
const Names largest_gradients = {"attention_backward_simple", "attention_backward_wide_block"};
const Names largest_gradients_of_halves = {"attention_backward_simple", "attention_backward_wide_block",
                                           "attention_backward_wide_tensor"};

class AttentionTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(AttentionTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

constexpr auto with_all =
    "attention_forward q=f32:3x6x9x13 k=f32:3x2x17x13 v=f32:3x2x17x21 bias=f32:3x6x9x17 mask=u8:3x6x9x17 "
    "lengths=i32:3 lse=f32:3x6x9 left=7 right=2 align=end";
constexpr auto half_with_all =
    "attention_forward q=f16:3x6x9x16 k=f16:3x2x40x16 v=f16:3x2x40x24 bias=f16:1x6x9x40 mask=u8:3x1x1x40 "
    "lengths=i32:3 lse=f32:3x6x9 right=0 align=end";

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Values(
        AlgorithmCase{"Float", "attention_forward q=f32:2x3x37x24 k=f32:2x3x41x24 v=f32:2x3x41x24", all},
        AlgorithmCase{"Half",
                      "attention_forward q=f16:1x2x150x64 k=f16:1x2x200x64 v=f16:1x2x200x64 lse=f32:1x2x150 alpha=any "
                      "beta=any",
                      halves},
        AlgorithmCase{"BF16", "attention_forward q=bf16:2x4x33x32 k=bf16:2x2x65x32 v=bf16:2x2x65x32", halves},
        AlgorithmCase{"MixedTypes",
                      "attention_forward q=bf16:2x3x9x8 k=f32:2x3x11x8 v=f16:2x3x11x8 bias=bf16:2x3x9x11 y=f32:2x3x9x8",
                      all},
        AlgorithmCase{"Dropout",
                      "attention_forward q=f32:2x4x9x8 k=f32:2x2x41x8 v=f32:2x2x41x8 lse=f32:2x4x9 dropout=any", all},
        AlgorithmCase{"HalfWithDropout",
                      "attention_forward q=f16:2x4x9x16 k=f16:2x2x41x16 v=f16:2x2x41x16 right=0 align=end dropout=any",
                      halves},
        AlgorithmCase{"OneHeadOfKeys", "attention_forward q=f16:2x6x7x16 k=f16:2x1x70x16 v=f16:2x1x70x16", halves},
        AlgorithmCase{"WiderValues", "attention_forward q=f16:1x2x20x16 k=f16:1x2x33x16 v=f16:1x2x33x72", halves},
        AlgorithmCase{"NarrowerValues", "attention_forward q=f32:1x2x20x37 k=f32:1x2x33x37 v=f32:1x2x33x5", all},
        AlgorithmCase{"OddElements", "attention_forward q=bf16:1x2x20x19 k=bf16:1x2x33x19 v=bf16:1x2x33x19", all},
        AlgorithmCase{"LongElements", "attention_forward q=f32:1x2x3x257 k=f32:1x1x4x257 v=f32:1x1x4x257", largest},
        AlgorithmCase{"LongestElements", "attention_forward q=f16:2x2x1x1024 k=f16:2x1x5x1024 v=f16:2x1x5x1024",
                      largest_halves},
        AlgorithmCase{"OneElement", "attention_forward q=f32:1x1x1x1 k=f32:1x1x1x1 v=f32:1x1x1x1", all},
        AlgorithmCase{"OneQuery", "attention_forward q=f16:3x8x1x64 k=f16:3x2x300x64 v=f16:3x2x300x64 lengths=i32:3",
                      halves},
        AlgorithmCase{"OneKey", "attention_forward q=f32:2x2x70x8 k=f32:2x2x1x8 v=f32:2x2x1x8 lse=f32:2x2x70", all},
        AlgorithmCase{"NoKeys", "attention_forward q=f32:2x3x5x8 k=f32:2x3x0x8 v=f32:2x3x0x8 lse=f32:2x3x5 beta=any",
                      all},
        AlgorithmCase{"NoQueries", "attention_forward q=f16:2x3x0x8 k=f16:2x3x7x8 v=f16:2x3x7x8", halves},
        AlgorithmCase{"EmptyBatch", "attention_forward q=f32:0x3x5x8 k=f32:0x3x7x8 v=f32:0x3x7x8 lse=f32:0x3x5", all},
        AlgorithmCase{"DynamicBatch",
                      "attention_forward q=f32:8x4x5x6 k=f32:8x2x7x6 v=f32:8x2x7x6 lengths=i32:8 lse=f32:8x4x5 n=?",
                      all},
        AlgorithmCase{"HalfWithADynamicBatch",
                      "attention_forward q=f16:8x4x5x16 k=f16:8x2x19x16 v=f16:8x2x19x16 mask=u8:8x1x1x19 n=?", halves}),
    case_name);

// Which keys a query sees, and what is added to their scores.
INSTANTIATE_TEST_SUITE_P(
    Scores, AttentionTest,
    testing::Values(
        AlgorithmCase{"WithAll", with_all, all}, AlgorithmCase{"HalfWithAll", half_with_all, halves},
        AlgorithmCase{"Causal", "attention_forward q=f16:1x2x70x16 k=f16:1x2x70x16 v=f16:1x2x70x16 right=0", halves},
        AlgorithmCase{"CausalAtTheEndOfMoreKeys",
                      "attention_forward q=f32:1x2x70x8 k=f32:1x2x150x8 v=f32:1x2x150x8 right=0 align=end", all},
        AlgorithmCase{"CausalAtTheEndOfFewerKeys",
                      "attention_forward q=f32:2x3x9x4 k=f32:2x3x4x4 v=f32:2x3x4x6 lse=f32:2x3x9 right=0 align=end",
                      all},
        AlgorithmCase{"CausalOfMoreKeys", "attention_forward q=bf16:1x2x40x8 k=bf16:1x2x150x8 v=bf16:1x2x150x8 right=0",
                      halves},
        AlgorithmCase{"Window", "attention_forward q=f16:1x2x150x16 k=f16:1x2x150x16 v=f16:1x2x150x16 left=20 right=5",
                      halves},
        AlgorithmCase{"LeftAlone", "attention_forward q=f32:1x2x70x8 k=f32:1x2x70x8 v=f32:1x2x70x8 left=3", all},
        AlgorithmCase{"WindowBehindTheLastKey",
                      "attention_forward q=bf16:1x2x80x8 k=bf16:1x2x9x8 v=bf16:1x2x9x8 lse=f32:1x2x80 left=1 right=0",
                      halves},
        AlgorithmCase{"Lengths", "attention_forward q=f32:5x2x7x8 k=f32:5x1x70x8 v=f32:5x1x70x8 lengths=i32:5", all},
        AlgorithmCase{"OneKeyLessThanATile", "attention_forward q=f16:1x2x9x16 k=f16:1x2x63x16 v=f16:1x2x63x16",
                      halves},
        AlgorithmCase{"OneKeyOfATileIsBeforeALaterQuerysWindow",
                      "attention_forward q=f16:1x2x2x16 k=f16:1x2x80x16 v=f16:1x2x80x16 left=63 align=end", halves},
        AlgorithmCase{"LengthsAndAWindow",
                      "attention_forward q=f16:5x2x20x8 k=f16:5x1x70x8 v=f16:5x1x70x8 lengths=i32:5 left=9 right=1 "
                      "align=end",
                      halves},
        AlgorithmCase{"BiasOfEachHead",
                      "attention_forward q=f16:2x4x20x16 k=f16:2x4x33x16 v=f16:2x4x33x16 bias=f16:1x4x20x33", halves},
        AlgorithmCase{"BiasOfEachKey",
                      "attention_forward q=bf16:2x4x20x16 k=bf16:2x4x33x16 v=bf16:2x4x33x16 bias=f32:2x1x1x33", halves},
        AlgorithmCase{"BiasOfEachQuery",
                      "attention_forward q=f32:2x4x9x8 k=f32:2x4x7x8 v=f32:2x4x7x8 bias=f32:2x1x9x1 mask=u8:1x4x9x1",
                      all},
        AlgorithmCase{"MaskOfEachPair",
                      "attention_forward q=f16:2x4x20x16 k=f16:2x4x33x16 v=f16:2x4x33x16 mask=u8:1x1x20x33 "
                      "lse=f32:2x4x20",
                      halves},
        AlgorithmCase{"MaskTransposed",
                      "attention_forward q=f32:2x2x9x8 k=f32:2x2x7x8 v=f32:2x2x7x8 bias=f32:2x2x9x7:126,63,1,9 "
                      "mask=u8:2x1x9x7:70,70,1,10",
                      all}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Strides, AttentionTest,
    testing::Values(
        AlgorithmCase{"HeadsInside",  // N,M,H,D in memory
                      "attention_forward q=f16:2x4x33x16:2112,16,64,1 k=f16:2x2x40x16:1280,16,32,1 "
                      "v=f16:2x2x40x16:1280,16,32,1 y=f16:2x4x33x16:2112,16,64,1",
                      halves},
        AlgorithmCase{"OneTensorOfQueriesKeysAndValues",  // N,M,3,H,D in memory
                      "attention_forward q=bf16:2x3x20x16:2880,16,144,1 k=bf16:2x3x20x16:2880,16,144,1 "
                      "v=bf16:2x3x20x16:2880,16,144,1 right=0",
                      halves},
        AlgorithmCase{"Regions",
                      "attention_forward q=f32:2x4x5x6:200,40,7,1 k=f32:2x2x9x6:150,70,7,1 v=f32:2x2x9x5:150,70,7,1 "
                      "bias=f32:2x4x5x9:240,60,11,1 mask=u8:2x4x5x9:240,60,11,1 y=f32:2x4x5x5:160,40,7,1 "
                      "lse=f32:2x4x5:30,7,1 alpha=any beta=any",
                      all},
        AlgorithmCase{"RegionsInF16",
                      "attention_forward q=f16:2x4x20x16:2000,400,17,1 k=f16:2x2x33x16:1500,700,17,1 "
                      "v=f16:2x2x33x24:2000,1000,25,1 y=f16:2x4x20x24:2400,600,25,1 alpha=any beta=any",
                      all},
        AlgorithmCase{"RegionsInBF16",
                      "attention_forward q=bf16:2x4x20x16:2000,400,18,1 k=bf16:2x2x33x16:1500,700,18,1 "
                      "v=bf16:2x2x33x24:2000,1000,26,1 y=bf16:2x4x20x24:2400,600,26,1",
                      halves},
        AlgorithmCase{"ElementsOutside",
                      "attention_forward q=f32:2x3x5x4:60,20,1,5 k=f32:2x3x7x4:84,28,1,7 v=f32:2x3x7x4:84,28,1,7 "
                      "y=f32:2x3x5x4:60,20,1,5",
                      all},
        AlgorithmCase{"HalfWithElementsOutside",
                      "attention_forward q=f16:2x3x20x16:960,320,1,20 k=f16:2x3x40x16:1920,640,1,40 "
                      "v=f16:2x3x40x16:1920,640,1,40 y=f16:2x3x20x16:960,320,1,20",
                      all},
        AlgorithmCase{"KeysOfAllImages",
                      "attention_forward q=f16:3x2x20x16 k=f16:3x2x33x16:0,528,16,1 v=f16:3x2x33x16:0,0,16,1 "
                      "lse=f32:3x2x20:1,3,6",
                      halves},
        AlgorithmCase{"PoorlyAligned", "attention_forward q=f16:1x2x20x16@2 k=f16:1x2x33x16@4 v=f16:1x2x33x16@8", all}),
    case_name);

constexpr auto gradient_with_all =
    "attention_backward dy=f32:3x6x9x21 q=f32:3x6x9x13 k=f32:3x2x17x13 v=f32:3x2x17x21 y=f32:3x6x9x21 lse=f32:3x6x9 "
    "bias=f32:3x6x9x17 mask=u8:3x6x9x17 lengths=i32:3 dk=f32:3x2x17x13 dv=f32:3x2x17x21 dbias=f32:3x6x9x17 left=7 "
    "right=2 align=end";
constexpr auto half_gradient_with_all =
    "attention_backward dy=f16:3x6x9x24 q=f16:3x6x9x16 k=f16:3x2x40x16 v=f16:3x2x40x24 y=f16:3x6x9x24 lse=f32:3x6x9 "
    "bias=f16:1x6x9x40 mask=u8:3x1x1x40 lengths=i32:3 dk=f16:3x2x40x16 dv=f16:3x2x40x24 dbias=f16:3x6x9x40 right=0 "
    "align=end";

INSTANTIATE_TEST_SUITE_P(
    GradientsOfShapes, AttentionTest,
    testing::Values(
        AlgorithmCase{"Float",
                      "attention_backward dy=f32:2x3x37x24 q=f32:2x3x37x24 k=f32:2x3x41x24 v=f32:2x3x41x24 "
                      "y=f32:2x3x37x24 lse=f32:2x3x37 dk=f32:2x3x41x24 dv=f32:2x3x41x24",
                      gradients},
        AlgorithmCase{"Half",
                      "attention_backward dy=f16:1x2x100x64 q=f16:1x2x100x64 k=f16:1x2x150x64 v=f16:1x2x150x64 "
                      "y=f16:1x2x100x64 lse=f32:1x2x100 dk=f16:1x2x150x64 dv=f16:1x2x150x64 alpha=any beta=any",
                      gradients_of_halves},
        AlgorithmCase{"BF16",
                      "attention_backward dy=bf16:2x4x33x32 q=bf16:2x4x33x32 k=bf16:2x2x65x32 v=bf16:2x2x65x32 "
                      "y=bf16:2x4x33x32 lse=f32:2x4x33 dk=bf16:2x2x65x32 dv=bf16:2x2x65x32",
                      gradients_of_halves},
        AlgorithmCase{"MixedTypes",
                      "attention_backward dy=f16:2x3x9x8 q=bf16:2x3x9x8 k=f32:2x3x11x8 v=f16:2x3x11x8 y=f32:2x3x9x8 "
                      "lse=f32:2x3x9 bias=bf16:2x3x9x11 dq=f32:2x3x9x8 dk=bf16:2x3x11x8 dv=f32:2x3x11x8 "
                      "dbias=f16:2x3x9x11",
                      gradients},
        AlgorithmCase{"Dropout",
                      "attention_backward dy=f32:2x4x9x8 q=f32:2x4x9x8 k=f32:2x2x41x8 v=f32:2x2x41x8 y=f32:2x4x9x8 "
                      "lse=f32:2x4x9 dk=f32:2x2x41x8 dv=f32:2x2x41x8 dropout=any",
                      gradients},
        AlgorithmCase{
            "HalfWithDropout",
            "attention_backward dy=bf16:2x4x9x16 q=bf16:2x4x9x16 k=bf16:2x2x41x16 v=bf16:2x2x41x16 "
            "y=bf16:2x4x9x16 lse=f32:2x4x9 dk=bf16:2x2x41x16 dv=bf16:2x2x41x16 dbias=bf16:2x4x9x41 dropout=any",
            gradients_of_halves},
        AlgorithmCase{"OfQueriesAlone",
                      "attention_backward dy=f16:2x2x20x16 q=f16:2x2x20x16 k=f16:2x2x33x16 v=f16:2x2x33x16 "
                      "y=f16:2x2x20x16 lse=f32:2x2x20",
                      gradients_of_halves},
        AlgorithmCase{"OfQueriesAndKeys",
                      "attention_backward dy=f32:2x2x9x8 q=f32:2x2x9x8 k=f32:2x2x7x8 v=f32:2x2x7x8 y=f32:2x2x9x8 "
                      "lse=f32:2x2x9 dk=f32:2x2x7x8",
                      gradients},
        AlgorithmCase{"OfQueriesAndValues",
                      "attention_backward dy=bf16:2x2x9x8 q=bf16:2x2x9x8 k=bf16:2x2x7x8 v=bf16:2x2x7x8 y=bf16:2x2x9x8 "
                      "lse=f32:2x2x9 dv=bf16:2x2x7x8",
                      gradients_of_halves},
        AlgorithmCase{"OneHeadOfKeys",
                      "attention_backward dy=f16:2x6x7x16 q=f16:2x6x7x16 k=f16:2x1x70x16 v=f16:2x1x70x16 "
                      "y=f16:2x6x7x16 lse=f32:2x6x7 dk=f16:2x1x70x16 dv=f16:2x1x70x16",
                      gradients_of_halves},
        AlgorithmCase{"WiderValues",
                      "attention_backward dy=f16:1x2x20x72 q=f16:1x2x20x16 k=f16:1x2x33x16 v=f16:1x2x33x72 "
                      "y=f16:1x2x20x72 lse=f32:1x2x20 dk=f16:1x2x33x16 dv=f16:1x2x33x72",
                      gradients_of_halves},
        AlgorithmCase{"NarrowerValues",
                      "attention_backward dy=f32:1x2x20x5 q=f32:1x2x20x37 k=f32:1x2x33x37 v=f32:1x2x33x5 "
                      "y=f32:1x2x20x5 lse=f32:1x2x20 dk=f32:1x2x33x37 dv=f32:1x2x33x5",
                      gradients},
        AlgorithmCase{"OddElements",
                      "attention_backward dy=bf16:1x2x20x19 q=bf16:1x2x20x19 k=bf16:1x2x33x19 v=bf16:1x2x33x19 "
                      "y=bf16:1x2x20x19 lse=f32:1x2x20 dk=bf16:1x2x33x19 dv=bf16:1x2x33x19",
                      gradients},
        AlgorithmCase{"LongElements",
                      "attention_backward dy=f32:1x2x3x257 q=f32:1x2x3x257 k=f32:1x1x4x257 v=f32:1x1x4x257 "
                      "y=f32:1x2x3x257 lse=f32:1x2x3 dk=f32:1x1x4x257 dv=f32:1x1x4x257",
                      largest_gradients},
        AlgorithmCase{"LongestElements",
                      "attention_backward dy=f16:2x2x1x1024 q=f16:2x2x1x1024 k=f16:2x1x5x1024 v=f16:2x1x5x1024 "
                      "y=f16:2x2x1x1024 lse=f32:2x2x1 dk=f16:2x1x5x1024 dv=f16:2x1x5x1024",
                      largest_gradients_of_halves},
        AlgorithmCase{"OneElement",
                      "attention_backward dy=f32:1x1x1x1 q=f32:1x1x1x1 k=f32:1x1x1x1 v=f32:1x1x1x1 y=f32:1x1x1x1 "
                      "lse=f32:1x1x1 dk=f32:1x1x1x1 dv=f32:1x1x1x1 dbias=f32:1x1x1x1",
                      gradients},
        AlgorithmCase{"OneQuery",
                      "attention_backward dy=f16:3x8x1x64 q=f16:3x8x1x64 k=f16:3x2x80x64 v=f16:3x2x80x64 "
                      "y=f16:3x8x1x64 lse=f32:3x8x1 lengths=i32:3 dk=f16:3x2x80x64 dv=f16:3x2x80x64",
                      gradients_of_halves},
        AlgorithmCase{"OneKey",
                      "attention_backward dy=f32:2x2x70x8 q=f32:2x2x70x8 k=f32:2x2x1x8 v=f32:2x2x1x8 y=f32:2x2x70x8 "
                      "lse=f32:2x2x70 dk=f32:2x2x1x8 dv=f32:2x2x1x8",
                      gradients},
        AlgorithmCase{"NoKeys",
                      "attention_backward dy=f32:2x3x5x8 q=f32:2x3x5x8 k=f32:2x3x0x8 v=f32:2x3x0x8 y=f32:2x3x5x8 "
                      "lse=f32:2x3x5 dk=f32:2x3x0x8 dv=f32:2x3x0x8 beta=any",
                      gradients},
        AlgorithmCase{"NoQueries",
                      "attention_backward dy=f16:2x3x0x8 q=f16:2x3x0x8 k=f16:2x3x7x8 v=f16:2x3x7x8 y=f16:2x3x0x8 "
                      "lse=f32:2x3x0 dk=f16:2x3x7x8 dv=f16:2x3x7x8",
                      gradients_of_halves},
        AlgorithmCase{"EmptyBatch",
                      "attention_backward dy=f32:0x3x5x8 q=f32:0x3x5x8 k=f32:0x3x7x8 v=f32:0x3x7x8 y=f32:0x3x5x8 "
                      "lse=f32:0x3x5 dk=f32:0x3x7x8 dv=f32:0x3x7x8",
                      gradients},
        AlgorithmCase{"DynamicBatch",
                      "attention_backward dy=f32:8x4x5x6 q=f32:8x4x5x6 k=f32:8x2x7x6 v=f32:8x2x7x6 y=f32:8x4x5x6 "
                      "lse=f32:8x4x5 lengths=i32:8 dk=f32:8x2x7x6 dv=f32:8x2x7x6 n=?",
                      gradients},
        AlgorithmCase{"HalfWithADynamicBatch",
                      "attention_backward dy=f16:8x4x5x16 q=f16:8x4x5x16 k=f16:8x2x19x16 v=f16:8x2x19x16 "
                      "y=f16:8x4x5x16 lse=f32:8x4x5 mask=u8:8x1x1x19 dk=f16:8x2x19x16 dv=f16:8x2x19x16 n=?",
                      gradients_of_halves}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    GradientsOfScores, AttentionTest,
    testing::Values(
        AlgorithmCase{"WithAll", gradient_with_all, gradients},
        AlgorithmCase{"HalfWithAll", half_gradient_with_all, gradients_of_halves},
        AlgorithmCase{"Causal",
                      "attention_backward dy=f16:1x2x70x16 q=f16:1x2x70x16 k=f16:1x2x70x16 v=f16:1x2x70x16 "
                      "y=f16:1x2x70x16 lse=f32:1x2x70 dk=f16:1x2x70x16 dv=f16:1x2x70x16 right=0",
                      gradients_of_halves},
        AlgorithmCase{"CausalAtTheEndOfMoreKeys",
                      "attention_backward dy=f32:1x2x40x8 q=f32:1x2x40x8 k=f32:1x2x100x8 v=f32:1x2x100x8 "
                      "y=f32:1x2x40x8 lse=f32:1x2x40 dk=f32:1x2x100x8 dv=f32:1x2x100x8 right=0 align=end",
                      gradients},
        AlgorithmCase{"CausalAtTheEndOfFewerKeys",
                      "attention_backward dy=f32:2x3x9x6 q=f32:2x3x9x4 k=f32:2x3x4x4 v=f32:2x3x4x6 y=f32:2x3x9x6 "
                      "lse=f32:2x3x9 dk=f32:2x3x4x4 dv=f32:2x3x4x6 right=0 align=end",
                      gradients},
        AlgorithmCase{"CausalOfMoreKeys",
                      "attention_backward dy=bf16:1x2x40x8 q=bf16:1x2x40x8 k=bf16:1x2x100x8 v=bf16:1x2x100x8 "
                      "y=bf16:1x2x40x8 lse=f32:1x2x40 dk=bf16:1x2x100x8 dv=bf16:1x2x100x8 right=0",
                      gradients_of_halves},
        AlgorithmCase{"Window",
                      "attention_backward dy=f16:1x2x100x16 q=f16:1x2x100x16 k=f16:1x2x100x16 v=f16:1x2x100x16 "
                      "y=f16:1x2x100x16 lse=f32:1x2x100 dk=f16:1x2x100x16 dv=f16:1x2x100x16 left=20 right=5",
                      gradients_of_halves},
        AlgorithmCase{"WindowBehindTheLastKey",
                      "attention_backward dy=bf16:1x2x80x8 q=bf16:1x2x80x8 k=bf16:1x2x9x8 v=bf16:1x2x9x8 "
                      "y=bf16:1x2x80x8 lse=f32:1x2x80 dk=bf16:1x2x9x8 dv=bf16:1x2x9x8 left=1 right=0",
                      gradients_of_halves},
        AlgorithmCase{"Lengths",
                      "attention_backward dy=f32:5x2x7x8 q=f32:5x2x7x8 k=f32:5x1x40x8 v=f32:5x1x40x8 y=f32:5x2x7x8 "
                      "lse=f32:5x2x7 lengths=i32:5 dk=f32:5x1x40x8 dv=f32:5x1x40x8 dbias=f32:5x2x7x40",
                      gradients},
        AlgorithmCase{"LengthsAndAWindow",
                      "attention_backward dy=f16:5x2x20x8 q=f16:5x2x20x8 k=f16:5x1x70x8 v=f16:5x1x70x8 "
                      "y=f16:5x2x20x8 lse=f32:5x2x20 lengths=i32:5 dk=f16:5x1x70x8 dv=f16:5x1x70x8 left=9 right=1 "
                      "align=end",
                      gradients_of_halves},
        AlgorithmCase{"BiasOfEachHead",
                      "attention_backward dy=f16:2x4x20x16 q=f16:2x4x20x16 k=f16:2x4x33x16 v=f16:2x4x33x16 "
                      "y=f16:2x4x20x16 lse=f32:2x4x20 bias=f16:1x4x20x33 dk=f16:2x4x33x16 dv=f16:2x4x33x16 "
                      "dbias=f16:2x4x20x33",
                      gradients_of_halves},
        AlgorithmCase{"BiasAndMaskOfEachQuery",
                      "attention_backward dy=f32:2x4x9x8 q=f32:2x4x9x8 k=f32:2x4x7x8 v=f32:2x4x7x8 y=f32:2x4x9x8 "
                      "lse=f32:2x4x9 bias=f32:2x1x9x1 mask=u8:1x4x9x1 dk=f32:2x4x7x8 dv=f32:2x4x7x8",
                      gradients},
        AlgorithmCase{"MaskOfEachPair",
                      "attention_backward dy=bf16:2x4x20x16 q=bf16:2x4x20x16 k=bf16:2x4x33x16 v=bf16:2x4x33x16 "
                      "y=bf16:2x4x20x16 lse=f32:2x4x20 mask=u8:1x1x20x33:680,680,1,20 dk=bf16:2x4x33x16 "
                      "dv=bf16:2x4x33x16",
                      gradients_of_halves}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    GradientsOfStrides, AttentionTest,
    testing::Values(
        AlgorithmCase{"HeadsInside",
                      "attention_backward dy=f16:2x4x33x16:2112,16,64,1 q=f16:2x4x33x16:2112,16,64,1 "
                      "k=f16:2x2x40x16:1280,16,32,1 v=f16:2x2x40x16:1280,16,32,1 y=f16:2x4x33x16:2112,16,64,1 "
                      "lse=f32:2x4x33 dq=f16:2x4x33x16:2112,16,64,1 dk=f16:2x2x40x16:1280,16,32,1 "
                      "dv=f16:2x2x40x16:1280,16,32,1",
                      gradients_of_halves},
        AlgorithmCase{"OneTensorOfQueriesKeysAndValues",
                      "attention_backward dy=bf16:2x3x20x16 q=bf16:2x3x20x16:2880,16,144,1 "
                      "k=bf16:2x3x20x16:2880,16,144,1 v=bf16:2x3x20x16:2880,16,144,1 y=bf16:2x3x20x16 lse=f32:2x3x20 "
                      "dq=bf16:2x3x20x16:2880,16,144,1 dk=bf16:2x3x20x16:2880,16,144,1 "
                      "dv=bf16:2x3x20x16:2880,16,144,1 right=0",
                      gradients_of_halves},
        AlgorithmCase{"Regions",
                      "attention_backward dy=f32:2x4x5x5:160,40,7,1 q=f32:2x4x5x6:200,40,7,1 k=f32:2x2x9x6:150,70,7,1 "
                      "v=f32:2x2x9x5:150,70,7,1 y=f32:2x4x5x5:160,40,7,1 lse=f32:2x4x5:30,7,1 "
                      "bias=f32:2x4x5x9:240,60,11,1 mask=u8:2x4x5x9:240,60,11,1 dq=f32:2x4x5x6:200,40,7,1 "
                      "dk=f32:2x2x9x6:150,70,7,1 dv=f32:2x2x9x5:150,70,7,1 dbias=f32:2x4x5x9:240,60,11,1 alpha=any "
                      "beta=any",
                      gradients},
        AlgorithmCase{"RegionsInF16",
                      "attention_backward dy=f16:2x4x20x24:2400,600,25,1 q=f16:2x4x20x16:2000,400,17,1 "
                      "k=f16:2x2x33x16:1500,700,17,1 v=f16:2x2x33x24:2000,1000,25,1 y=f16:2x4x20x24:2400,600,25,1 "
                      "lse=f32:2x4x20 dq=f16:2x4x20x16:2000,400,17,1 dk=f16:2x2x33x16:1500,700,17,1 "
                      "dv=f16:2x2x33x24:2000,1000,25,1 alpha=any beta=any",
                      gradients},
        AlgorithmCase{"RegionsInBF16",
                      "attention_backward dy=bf16:2x4x20x24:2400,600,26,1 q=bf16:2x4x20x16:2000,400,18,1 "
                      "k=bf16:2x2x33x16:1500,700,18,1 v=bf16:2x2x33x24:2000,1000,26,1 y=bf16:2x4x20x24:2400,600,26,1 "
                      "lse=f32:2x4x20 dq=bf16:2x4x20x16:2000,400,18,1 dk=bf16:2x2x33x16:1500,700,18,1 "
                      "dv=bf16:2x2x33x24:2000,1000,26,1",
                      gradients_of_halves},
        AlgorithmCase{"ElementsOutside",
                      "attention_backward dy=f32:2x3x5x4:60,20,1,5 q=f32:2x3x5x4:60,20,1,5 k=f32:2x3x7x4:84,28,1,7 "
                      "v=f32:2x3x7x4:84,28,1,7 y=f32:2x3x5x4:60,20,1,5 lse=f32:2x3x5 dq=f32:2x3x5x4:60,20,1,5 "
                      "dk=f32:2x3x7x4:84,28,1,7 dv=f32:2x3x7x4:84,28,1,7",
                      gradients},
        AlgorithmCase{"KeysOfAllImages",
                      "attention_backward dy=f16:3x2x20x16:0,0,16,1 q=f16:3x2x20x16 k=f16:3x2x33x16:0,528,16,1 "
                      "v=f16:3x2x33x16:0,0,16,1 y=f16:3x2x20x16 lse=f32:3x2x20:1,3,6 dk=f16:3x2x33x16 dv=f16:3x2x33x16",
                      gradients_of_halves},
        AlgorithmCase{"PoorlyAligned",
                      "attention_backward dy=f16:1x2x20x16@4 q=f16:1x2x20x16@2 k=f16:1x2x33x16@4 v=f16:1x2x33x16@8 "
                      "y=f16:1x2x20x16@2 lse=f32:1x2x20@4 dk=f16:1x2x33x16@2 dv=f16:1x2x33x16@8",
                      gradients}),
    case_name);

// Heads of more than 128 elements: of other numbers of them in queries and values, in chunks and slices that end short.
constexpr auto large_with_all =
    "attention_forward q=f32:2x6x9x13 k=f32:2x2x17x13 v=f32:2x2x17x133 bias=f32:2x6x9x17 mask=u8:2x6x9x17 "
    "lengths=i32:2 lse=f32:2x6x9 left=7 right=2 align=end dropout=any alpha=any beta=any";
constexpr auto large_half_with_all =
    "attention_forward q=bf16:2x6x9x144 k=bf16:2x2x40x144 v=bf16:2x2x40x24 bias=f16:1x6x9x40 mask=u8:2x1x1x40 "
    "lengths=i32:2 lse=f32:2x6x9 left=7 right=2 align=end dropout=any";
constexpr auto large_gradient_with_all =
    "attention_backward dy=f32:2x4x9x21 q=f32:2x4x9x133 k=f32:2x2x17x133 v=f32:2x2x17x21 y=f32:2x4x9x21 "
    "lse=f32:2x4x9 bias=f32:2x4x9x17 mask=u8:2x1x1x17 lengths=i32:2 dk=f32:2x2x17x133 dv=f32:2x2x17x21 "
    "dbias=f32:2x4x9x17 left=6 right=1 dropout=any alpha=any beta=any";
constexpr auto large_half_gradient_with_all =
    "attention_backward dy=f16:1x2x20x144 q=f16:1x2x20x40 k=f16:1x1x70x40 v=f16:1x1x70x144 y=f16:1x2x20x144 "
    "lse=f32:1x2x20 bias=f32:1x1x20x70 dk=f16:1x1x70x40 dv=f16:1x1x70x144 dbias=f32:1x2x20x70 right=0 align=end "
    "dropout=any";

constexpr auto large_step =  // as DeepSeek's latent attention has them
    "attention_forward q=f16:1x20x1x576 k=f16:1x1x140x576 v=f16:1x1x140x512 lse=f32:1x20x1";
constexpr auto large_causal_gradient =
    "attention_backward dy=bf16:1x1x40x160 q=bf16:1x1x40x160 k=bf16:1x1x70x160 v=bf16:1x1x70x160 y=bf16:1x1x40x160 "
    "lse=f32:1x1x40 dk=bf16:1x1x70x160 dv=bf16:1x1x70x160 right=0";

// Keys in parts, the last of which has fewer tiles; of some queries all keys are hidden.
constexpr auto large_in_parts =
    "attention_forward q=f32:1x2x9x129 k=f32:1x1x300x129 v=f32:1x1x300x133 mask=u8:1x2x9x1 lse=f32:1x2x9";
constexpr auto large_halves_in_parts =
    "attention_forward q=f16:1x2x9x24 k=f16:1x1x300x24 v=f16:1x1x300x134 mask=u8:1x2x9x1 lse=f32:1x2x9";

INSTANTIATE_TEST_SUITE_P(
    Wide, AttentionTest,
    testing::Values(
        AlgorithmCase{"WithAll", large_with_all, large},
        AlgorithmCase{"HalfWithAll", large_half_with_all, large_halves},
        AlgorithmCase{"Mixed", "attention_forward q=bf16:1x2x9x150 k=f32:1x2x11x150 v=f16:1x2x11x7 y=f32:1x2x9x7 n=?",
                      large},
        AlgorithmCase{"ElementsOutside",
                      "attention_forward q=f32:1x2x5x132:1320,660,1,5 k=f32:1x2x7x132:1848,924,1,7 "
                      "v=f32:1x2x7x4:56,28,1,7 y=f32:1x2x5x4:40,20,1,5",
                      large},
        AlgorithmCase{"Regions",
                      "attention_forward q=f32:1x4x5x130:4000,800,131,1 k=f32:1x2x9x130:4000,1500,131,1 "
                      "v=f32:1x2x9x5:150,70,7,1 y=f32:1x4x5x5:160,40,7,1 lse=f32:1x4x5:30,7,1",
                      large},
        AlgorithmCase{"RegionsInF16",
                      "attention_forward q=f16:1x4x5x136:4000,800,138,1 k=f16:1x2x9x136:4000,1500,138,1 "
                      "v=f16:1x2x9x8:150,100,10,1 y=f16:1x4x5x8:200,50,10,1",
                      large_halves},
        AlgorithmCase{"RegionsInBF16",
                      "attention_forward q=bf16:1x4x5x136:4000,800,138,1 k=bf16:1x2x9x136:4000,1500,138,1 "
                      "v=bf16:1x2x9x8:150,100,10,1 y=bf16:1x4x5x8:200,50,10,1",
                      large_halves},
        AlgorithmCase{"StepOfManyHeads", large_step, largest_halves},
        AlgorithmCase{"CausalGradient", large_causal_gradient, large_gradients_of_halves},
        AlgorithmCase{"NoKeys", "attention_forward q=f32:1x2x5x130 k=f32:1x2x0x130 v=f32:1x2x0x130 lse=f32:1x2x5",
                      large},
        AlgorithmCase{"GradientWithAll", large_gradient_with_all, large_gradients},
        AlgorithmCase{"HalfGradientWithAll", large_half_gradient_with_all, large_gradients_of_halves},
        AlgorithmCase{"GradientOfRegionsInF32",
                      "attention_backward dy=f32:1x4x5x8:200,50,10,1 q=f32:1x4x5x136:4000,800,138,1 "
                      "k=f32:1x2x9x136:4000,1500,138,1 v=f32:1x2x9x8:150,100,10,1 y=f32:1x4x5x8:200,50,10,1 "
                      "lse=f32:1x4x5:30,7,1 dq=f32:1x4x5x136:4000,800,138,1 dk=f32:1x2x9x136:4000,1500,138,1 "
                      "dv=f32:1x2x9x8:150,100,10,1",
                      large_gradients},
        AlgorithmCase{"GradientOfRegionsInF16",
                      "attention_backward dy=f16:1x4x5x8:200,50,10,1 q=f16:1x4x5x136:4000,800,138,1 "
                      "k=f16:1x2x9x136:4000,1500,138,1 v=f16:1x2x9x8:150,100,10,1 y=f16:1x4x5x8:200,50,10,1 "
                      "lse=f32:1x4x5:30,7,1 dq=f16:1x4x5x136:4000,800,138,1 dk=f16:1x2x9x136:4000,1500,138,1 "
                      "dv=f16:1x2x9x8:150,100,10,1",
                      large_gradients_of_halves},
        AlgorithmCase{"GradientOfRegionsInBF16",
                      "attention_backward dy=bf16:1x4x5x8:200,50,10,1 q=bf16:1x4x5x136:4000,800,138,1 "
                      "k=bf16:1x2x9x136:4000,1500,138,1 v=bf16:1x2x9x8:150,100,10,1 y=bf16:1x4x5x8:200,50,10,1 "
                      "lse=f32:1x4x5:30,7,1 dq=bf16:1x4x5x136:4000,800,138,1 dk=bf16:1x2x9x136:4000,1500,138,1 "
                      "dv=bf16:1x2x9x8:150,100,10,1",
                      large_gradients_of_halves},
        AlgorithmCase{"GradientOfValuesAlone",
                      "attention_backward dy=f16:1x2x9x136 q=bf16:1x2x9x6 k=bf16:1x1x7x6 v=f16:1x1x7x136 "
                      "y=f16:1x2x9x136 lse=f32:1x2x9 dv=f32:1x1x7x136 n=?",
                      large_gradients_of_halves},
        AlgorithmCase{"GradientOfKeysAlone",
                      "attention_backward dy=f32:1x2x9x3 q=f32:1x2x9x131 k=f32:1x2x7x131 v=f32:1x2x7x3 y=f32:1x2x9x3 "
                      "lse=f32:1x2x9 dk=f32:1x2x7x131",
                      large_gradients},
        AlgorithmCase{"GradientOfQueriesAlone",
                      "attention_backward dy=bf16:1x2x9x4 q=bf16:1x2x9x160 k=bf16:1x2x7x160 v=bf16:1x2x7x4 "
                      "y=bf16:1x2x9x4 lse=f32:1x2x9",
                      large_gradients_of_halves}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    AttentionConfigs, PairwiseMatch,
    testing::ValuesIn(
        covers(all, {with_all, "attention_forward q=f32:1x2x70x9 k=f32:1x2x150x9 v=f32:1x2x150x9 right=0 align=end"})),
    cover_name);
INSTANTIATE_TEST_SUITE_P(
    AttentionConfigsOfHalves, PairwiseMatch,
    testing::ValuesIn(covers(
        halves, {half_with_all, "attention_forward q=bf16:1x2x70x64 k=bf16:1x1x150x64 v=bf16:1x1x150x64 left=50"})),
    cover_name);
INSTANTIATE_TEST_SUITE_P(
    AttentionGradientConfigs, PairwiseMatch,
    testing::ValuesIn(covers(gradients,
                             {gradient_with_all,
                              "attention_backward dy=f32:1x2x40x9 q=f32:1x2x40x9 k=f32:1x2x100x9 v=f32:1x2x100x9 "
                              "y=f32:1x2x40x9 lse=f32:1x2x40 dk=f32:1x2x100x9 dv=f32:1x2x100x9 right=0 align=end"})),
    cover_name);
INSTANTIATE_TEST_SUITE_P(
    AttentionGradientConfigsOfHalves, PairwiseMatch,
    testing::ValuesIn(covers(gradients_of_halves,
                             {half_gradient_with_all,
                              "attention_backward dy=bf16:1x2x70x64 q=bf16:1x2x70x64 k=bf16:1x1x100x64 "
                              "v=bf16:1x1x100x64 y=bf16:1x2x70x64 lse=f32:1x2x70 dk=bf16:1x1x100x64 "
                              "dv=bf16:1x1x100x64 left=50"})),
    cover_name);

INSTANTIATE_TEST_SUITE_P(WideAttentionConfigs, PairwiseMatch,
                         testing::Values(cover("attention_wide_block", large_with_all),
                                         cover("attention_wide_block", large_step),
                                         cover("attention_wide_block", large_in_parts),
                                         cover("attention_wide_tensor", large_halves_in_parts),
                                         cover("attention_wide_tensor", large_half_with_all),
                                         cover("attention_wide_tensor", large_step),
                                         cover("attention_backward_wide_block", large_gradient_with_all),
                                         cover("attention_backward_wide_block", large_causal_gradient),
                                         cover("attention_backward_wide_tensor", large_half_gradient_with_all),
                                         cover("attention_backward_wide_tensor", large_causal_gradient)),
                         cover_name);

INSTANTIATE_TEST_SUITE_P(
    AttentionWithWideOffsets, WideIndexMatch,
    testing::Values(
        wide(all,
             "attention_forward q=f32:4x4x5x6 k=f32:4x2x7x6 v=f32:4x2x7x6 bias=f32:4x4x5x7 mask=u8:4x4x5x7 "
             "lse=f32:4x4x5 right=1 n=?"),
        wide(halves, "attention_forward q=f16:4x4x5x16 k=f16:4x2x7x16 v=f16:4x2x7x16 lengths=i32:4 lse=f32:4x4x5 n=?"),
        wide(gradients,
             "attention_backward dy=f32:4x4x5x6 q=f32:4x4x5x6 k=f32:4x2x7x6 v=f32:4x2x7x6 y=f32:4x4x5x6 lse=f32:4x4x5 "
             "bias=f32:4x4x5x7 mask=u8:4x4x5x7 dk=f32:4x2x7x6 dv=f32:4x2x7x6 dbias=f32:4x4x5x7 right=1 n=?"),
        wide(gradients_of_halves,
             "attention_backward dy=f16:4x4x5x16 q=f16:4x4x5x16 k=f16:4x2x7x16 v=f16:4x2x7x16 y=f16:4x4x5x16 "
             "lse=f32:4x4x5 lengths=i32:4 dk=f16:4x2x7x16 dv=f16:4x2x7x16 n=?"),
        wide({"attention_wide_block"},
             "attention_forward q=f32:4x2x5x130 k=f32:4x2x7x130 v=f32:4x2x7x6 lse=f32:4x2x5 n=?"),
        wide({"attention_wide_tensor"}, "attention_forward q=f16:4x2x5x16 k=f16:4x2x7x16 v=f16:4x2x7x136 n=?"),
        wide({"attention_backward_wide_block"},
             "attention_backward dy=f32:4x2x5x6 q=f32:4x2x5x130 k=f32:4x2x7x130 v=f32:4x2x7x6 y=f32:4x2x5x6 "
             "lse=f32:4x2x5 dk=f32:4x2x7x130 dv=f32:4x2x7x6 n=?"),
        wide({"attention_backward_wide_tensor"},
             "attention_backward dy=f16:4x2x5x136 q=f16:4x2x5x16 k=f16:4x2x7x16 v=f16:4x2x7x136 y=f16:4x2x5x136 "
             "lse=f32:4x2x5 dk=f16:4x2x7x16 dv=f16:4x2x7x136 n=?")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::attention_test
