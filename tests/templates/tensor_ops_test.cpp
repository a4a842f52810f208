// Tensor functions by every algorithm against the reference. Parts shared with activations (activation_test.cpp) are
// tested there: here are the functions, broadcasting, padding, and integer types.
#include "kiln/generator/operations/tensor_ops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::tensor_ops_test {
namespace {

using Names = std::vector<std::string>;

const Names op = {"tensor_op_simple", "tensor_op_vector"};
const Names op_across = {"tensor_op_simple", "tensor_op_vector", "tensor_op_transposed"};
const Names transform = {"tensor_transform_simple", "tensor_transform_vector"};
const Names transform_across = {"tensor_transform_simple", "tensor_transform_vector", "tensor_transform_transposed"};
const Names set = {"tensor_set_simple", "tensor_set_vector"};

// The functions stand in one header, whichever kernel calls them.
class TensorOpFunction : public testing::TestWithParam<TensorOpMode> {};

// The first input repeats along one dimension, the second along the other.
TEST_P(TensorOpFunction, MatchesTheReference) {
  const int inputs = inputs_of(GetParam());
  expect_some_defaults_match(
      {"",
       fmt::format("tensor_op a=f32:11x{}{}{} mode={}", inputs == 1 ? 7 : 1, inputs > 1 ? " b=f32:1x7" : "",
                   inputs > 2 ? " c=f32:11x7" : "", to_string(GetParam())),
       {"tensor_op_vector"}});
}

INSTANTIATE_TEST_SUITE_P(All, TensorOpFunction, testing::ValuesIn(tensor_op_modes()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

class TensorFunctions : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(TensorFunctions, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Op, TensorFunctions,
    testing::Values(
        AlgorithmCase{"ChannelsScaled", "tensor_op a=f16:2x8x3x5:nhwc b=f32:1x8x1x1 y=f16:2x8x3x5:nhwc mode=mul", op},
        AlgorithmCase{"PixelsScaled", "tensor_op a=f32:2x3x4x4 b=f32:1x1x4x4 mode=add alpha=any beta=any", op},
        AlgorithmCase{"Integers", "tensor_op a=i32:5x9 b=i8:5x9 y=i32:5x9 mode=sub", op},
        AlgorithmCase{"Saturates", "tensor_op a=u8:5x16:24,1 b=u8:5x16 y=u8:5x16:32,1 mode=add", op},
        AlgorithmCase{"Masks", "tensor_op a=f32:5x16:20,1 b=f32:5x1 y=u8:5x16 mode=lt", op},
        AlgorithmCase{"MaskedSelection", "tensor_op a=u8:5x16 b=f16:5x16 c=f16:1x1 y=f16:5x16 mode=select", op},
        AlgorithmCase{"OneScalarForAll", "tensor_op a=bf16:3x5x7 b=bf16:1x1x1 mode=max", op},
        AlgorithmCase{"Across", "tensor_op a=f32:2x33x5x3:nchw b=f16:2x33x5x3:nhwc y=f32:2x33x5x3:nhwc mode=min",
                      op_across},
        AlgorithmCase{"DynamicBatch", "tensor_op a=f32:4x6 b=f32:4x1 mode=div n=?", op},
        AlgorithmCase{"RepeatsThroughADynamicBatch", "tensor_op a=i8:1x3x5 b=i8:8x3x5 c=i8:1x1x5 mode=select n=?", op},
        AlgorithmCase{"Empty", "tensor_op a=f32:0x6 b=f32:1x6 mode=pow", op}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Transform, TensorFunctions,
    testing::Values(
        AlgorithmCase{"Copies", "tensor_transform x=i32:3x5x7:96,16,1 y=i32:3x5x7:96,16,1", transform},
        AlgorithmCase{"CopiesBytes", "tensor_transform x=i8:3x37 y=i8:3x37:64,1", transform},
        AlgorithmCase{"QuantisesIntoAnotherLayout", "tensor_transform x=f32:2x40x3x5:nchw y=i8:2x40x3x5:nhwc alpha=any",
                      transform_across},
        AlgorithmCase{"BytesToHalves", "tensor_transform x=i8:1x3x9x11:nhwc y=f16:1x3x9x11:nchw alpha=any",
                      transform_across},
        AlgorithmCase{"Rounds", "tensor_transform x=f32:4x33 y=bf16:4x33", transform},
        AlgorithmCase{"WideIntegers", "tensor_transform x=i32:4x33 y=f16:4x33", transform},
        AlgorithmCase{"Repeats", "tensor_transform x=f16:1x8x1x1 y=f16:2x8x3x4:256,1,80,16 beta=1", transform},
        AlgorithmCase{"Pads", "tensor_transform x=f32:2x3x5x7:200,60,9,1 pad=0,0,1,2,0,0,3,1", transform},
        AlgorithmCase{"PadsChannelsLast", "tensor_transform x=bf16:2x8x3x5:400,1,128,16 pad=0,0,2,1,0,0,0,1",
                      transform},
        AlgorithmCase{"PadsChannels", "tensor_transform x=bf16:2x3x4x5:nhwc y=bf16:2x8x4x5:nhwc pad=0,0,0,0,0,5,0,0",
                      transform},
        AlgorithmCase{"PadsIntoAnotherLayout",
                      "tensor_transform x=u8:2x3x4x5:nhwc y=f32:2x3x7x6:nchw pad=0,0,1,0,0,0,2,1 alpha=any beta=any",
                      transform},
        AlgorithmCase{"PadsOnlyPadding", "tensor_transform x=i8:2x0 y=i8:4x5 pad=1,2,1,3", transform},
        AlgorithmCase{"PadsADynamicBatch", "tensor_transform x=u8:4x3x5:20,6,1 pad=0,1,1,0,0,2 n=?", transform},
        AlgorithmCase{"RepeatsThroughADynamicBatch", "tensor_transform x=f16:1x8x3 y=f32:8x8x3 n=?", transform},
        AlgorithmCase{"DynamicBatchOfBytes", "tensor_transform x=u8:8x3x2:nwc y=u8:8x3x2 n=?", transform_across}),
    case_name);

INSTANTIATE_TEST_SUITE_P(Set, TensorFunctions,
                         testing::Values(AlgorithmCase{"Floats", "tensor_set y=f16:5x33", set},
                                         AlgorithmCase{"BytesWithGaps", "tensor_set y=u8:5x32:48,1", set},
                                         AlgorithmCase{"Integers", "tensor_set y=i32:3x5x7:nwc", set},
                                         AlgorithmCase{"Empty", "tensor_set y=f32:3x0", set},
                                         AlgorithmCase{"DynamicBatch", "tensor_set y=bf16:4x3 n=?", set}),
                         case_name);

INSTANTIATE_TEST_SUITE_P(
    TensorFunctionConfigs, PairwiseMatch,
    testing::Values(cover("tensor_set_simple", "tensor_set y=f32:3x5x7"),
                    cover("tensor_set_simple", "tensor_set y=u8:5x33:48,1"),
                    cover("tensor_transform_simple", "tensor_transform x=f32:3x5x7 y=f16:3x6x7 pad=0,1,0,0,0,0"),
                    cover("tensor_transform_simple", "tensor_transform x=u8:2x5x3x7:nhwc y=i8:2x5x3x7 beta=1"),
                    cover("tensor_op_simple", "tensor_op a=f16:3x5x7:96,16,1 b=f16:1x5x1 y=f16:3x5x7:96,16,1 mode=pow"),
                    cover("tensor_op_simple", "tensor_op a=bf16:67x3:cn b=f32:67x3 y=bf16:67x3 mode=max"),
                    cover("tensor_transform_vector", "tensor_transform x=f32:3x5x72 y=f16:3x5x76 pad=0,0,4,0,0,0"),
                    cover("tensor_op_vector", "tensor_op a=f32:33x1009 b=f32:1x1009 y=f32:33x1009 mode=add beta=1"),
                    cover("tensor_set_vector", "tensor_set y=f32:3x16x9x8:2000,1,160,16"),
                    cover("tensor_transform_vector", "tensor_transform x=u8:4x9x16 y=i8:4x11x16 pad=0,1,0,0,1,0"),
                    cover("tensor_op_vector",
                          "tensor_op a=f16:7x4x16:128,32,1 b=f32:7x1x16 c=f16:1x4x1 y=f16:7x4x16 mode=select"),
                    cover("tensor_set_vector", "tensor_set y=bf16:5x33"),
                    cover("tensor_transform_transposed", "tensor_transform x=f32:67x34:cn y=f32:67x34"),
                    cover("tensor_op_transposed", "tensor_op a=f16:2x37x5x9:nchw y=f16:2x37x5x9:nhwc mode=sqrt"),
                    cover("tensor_transform_transposed", "tensor_transform x=f16:2x37x5x9:nchw y=f32:2x37x5x9:nhwc"),
                    cover("tensor_op_transposed", "tensor_op a=f32:67x34:cn b=f16:67x34 y=f16:67x34 mode=mul")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    TensorFunctionsWithWideOffsets, WideIndexMatch,
    testing::Values(wide(op_across, "tensor_op a=f32:2x33x5x3:nchw b=f16:2x33x5x3:nhwc y=f32:2x33x5x3:nhwc mode=min"),
                    wide(transform_across, "tensor_transform x=f16:2x37x5x9:nchw y=i8:2x37x5x9:nhwc"),
                    wide(set, "tensor_set y=u8:5x32:48,1")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::tensor_ops_test
