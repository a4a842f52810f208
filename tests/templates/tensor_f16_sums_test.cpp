// Products on tensor cores whose steps are summed in f16, against the reference: by steps of 16 products, and of twice
// 8 on 7.5.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/fill.h"
#include "variant_check.h"

namespace kiln::testing_support::tensor_f16_sums_test {
namespace {

using Names = std::vector<std::string>;

const Names products = {"gemm_tensor_f16_sums", "gemm_tensor_staged_f16_sums"};
const Names convolutions = {"conv_tensor_f16_sums", "conv_tensor_staged_f16_sums"};
const Names staged_product = {"gemm_tensor_staged_f16_sums"};
const Names staged_convolution = {"conv_tensor_staged_f16_sums"};

class TensorF16Sums : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(TensorF16Sums, MatchTheReference) {
  expect_some_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Products, TensorF16Sums,
    testing::Values(
        AlgorithmCase{"Primes", "gemm a=f16:37x67 b=f16:67x41 epilogue=bias fast", staged_product},
        AlgorithmCase{"LongDepth", "gemm a=f16:33x404 b=f16:404x18 c=f32:33x18 alpha=any beta=any fast", products},
        AlgorithmCase{"Regions",
                      "gemm a=f16:3x37x130:5600,150,1@4 b=f16:3x130x40:5472,42,1@4 c=f16:3x37x40:2000,50,1 fast",
                      products}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Convolutions, TensorF16Sums,
    testing::Values(
        AlgorithmCase{"ChannelsLast",
                      "conv_forward x=f16:2x40x6x5:nhwc w=f16:24x40x3x3:nhwc pad=1 epilogue=bias+add+relu fast",
                      convolutions},
        AlgorithmCase{"ChannelsFirst", "conv_forward x=f16:2x5x11x13 w=f16:7x5x3x3 pad=1 stride=2 fast",
                      staged_convolution},
        AlgorithmCase{"Groups", "conv_forward x=f16:1x48x5x7:nhwc w=f16:6x24x3x3:nhwc groups=2 dilation=2 pad=2 fast",
                      convolutions},
        AlgorithmCase{"Regions",
                      "conv_forward x=f16:2x36x7x9:4000,1,452,48@4 w=f16:24x36x3x3:400,1,132,40@4 "
                      "y=f16:2x24x4x5:800,1,160,28@4 stride=2 pad=1 beta=any fast",
                      convolutions}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Gradients, TensorF16Sums,
    testing::Values(
        AlgorithmCase{"ByInput",
                      "conv_backward_data dy=f16:2x24x5x7:nhwc w=f16:24x16x3x3:nhwc dx=f16:2x16x9x13:nhwc stride=2 "
                      "pad=1 fast",
                      {"conv_backward_data_tensor_f16_sums"}},
        AlgorithmCase{"ByInputInRegions",
                      "conv_backward_data dy=f16:2x24x5x7:4000,1,704,100@4 w=f16:24x6x3x3:90,1,30,10@4 "
                      "dx=f16:2x6x9x13:900,1,96,7 stride=2 pad=1 fast",
                      {"conv_backward_data_tensor_f16_sums"}},
        AlgorithmCase{"ByFilter",
                      "conv_backward_filter x=f16:3x8x7x5:nhwc dy=f16:3x16x7x5:nhwc dw=f32:16x8x3x3:nhwc pad=1 fast",
                      {"conv_backward_filter_tensor_f16_sums"}},
        AlgorithmCase{"ByFilterInRegions",
                      "conv_backward_filter x=f16:3x8x7x5:900,1,70,10@4 dy=f16:3x16x7x5:800,1,100,20@4 "
                      "dw=f16:16x8x3x3:90,1,27,9 pad=1 fast",
                      {"conv_backward_filter_tensor_f16_sums"}}),
    case_name);

TEST(TensorF16SumsOfTuring, MatchTheReference) {
  expect_some_defaults_match({"", "gemm a=f16:35x68 b=f16:68x21 fast", staged_product}, target_of(7, 5));
  expect_some_defaults_match({"", "conv_forward x=f16:2x5x9x7 w=f16:7x5x3x3 pad=1 fast", staged_convolution},
                             target_of(7, 5));
}

// The check of a request grants sums of 32 products on lanes. These kernels err less, however long the sums are, and
// yet more than with sums in f32.
TEST(TensorF16SumsOfLongDepth, ErrByNoMoreThanTwoRoundings) {
  const TestDevice& device = TestDevice::get();
  constexpr int rows = 3, depth = 2000, columns = 5;
  const Request request = Request::parse(
      fmt::format("gemm a=f16:{}x{} b=f16:{}x{} c=f32:{}x{} fast", rows, depth, depth, columns, rows, columns));
  const std::vector<std::byte> a = reference::filled(request, request.operands[0], reference::Values::uniform, 7),
                               b = reference::filled(request, request.operands[1], reference::Values::uniform, 8);
  const auto element = [](std::span<const std::byte> all, int at) {
    return reference::load(DType::f16, &all[2 * static_cast<size_t>(at)]);
  };
  const auto largest_error = [&](const std::string& algorithm) {
    const Config config = built_in_catalogue().find(algorithm)->on(request, device.target).first_legal().value();
    const Program program = built_in_catalogue().program(request, device.target, {algorithm, config});
    const execution::Executable executable = device.load(program, device.target, {"a", "b", "c"});
    const device::Buffer on_a = device::upload(device.context, a), on_b = device::upload(device.context, b);
    const device::Buffer c(device.context, rows * columns * sizeof(float));
    executable.run(nullptr, std::vector{on_a.address(), on_b.address(), c.address()}, {}, 1, 0);
    const std::vector<float> got = device::download<float>(*device.context, c.address(), rows * columns);
    double largest = 0;
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        double sum = 0, magnitude = 0;
        for (int d = 0; d < depth; ++d) {
          const double term = element(a, row * depth + d) * element(b, d * columns + column);
          sum += term;
          magnitude += std::fabs(term);
        }
        largest = std::max(largest, std::fabs(got[static_cast<size_t>(row * columns + column)] - sum) / magnitude);
      }
    }
    return largest;
  };
  const double in_f16 = largest_error("gemm_tensor_staged_f16_sums"), in_f32 = largest_error("gemm_tensor_staged");
  EXPECT_LT(in_f16, 0x1p-10);
  EXPECT_GT(in_f16, 10 * in_f32);
  EXPECT_GT(in_f16, 0x1p-20);
}

// Small enough that checks evaluate the reference everywhere: with numbers of all sizes sums of f16 overflow where
// those of the variant that others are compared with do not.
INSTANTIATE_TEST_SUITE_P(
    Configs, PairwiseMatch,
    testing::Values(
        cover("conv_tensor_f16_sums",
              "conv_forward x=f16:2x72x5x7:nhwc w=f16:136x72x3x3:nhwc pad=1 epilogue=bias fast"),
        cover("conv_tensor_staged_f16_sums", "conv_forward x=f16:3x19x11x9 w=f16:70x19x3x3 pad=1 fast"),
        cover("gemm_tensor_f16_sums", "gemm a=f16:140x72 b=f16:72x136 epilogue=relu fast"),
        cover("gemm_tensor_staged_f16_sums", "gemm a=f16:75x67 b=f16:67x69 c=f32:75x69 fast"),
        cover("conv_backward_data_tensor_f16_sums",
              "conv_backward_data dy=f16:2x72x9x7:nhwc w=f16:72x66x3x3:nhwc pad=1 fast"),
        cover("conv_backward_filter_tensor_f16_sums",
              "conv_backward_filter x=f16:3x34x9x7:nhwc dy=f16:3x66x9x7:nhwc dw=f16:66x34x3x3:nhwc pad=1 fast")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    WideIndex, WideIndexMatch,
    testing::Values(wide(convolutions, "conv_forward x=f16:1x24x5x4:nhwc w=f16:18x24x3x3:nhwc pad=1 fast"),
                    wide(products, "gemm a=f16:34x40 b=f16:40x18 fast"),
                    wide({"conv_backward_data_tensor_f16_sums"},
                         "conv_backward_data dy=f16:1x24x5x4:nhwc w=f16:24x18x3x3:nhwc pad=1 fast"),
                    wide({"conv_backward_filter_tensor_f16_sums"},
                         "conv_backward_filter x=f16:2x8x5x4:nhwc dy=f16:2x18x5x4:nhwc dw=f16:18x8x3x3:nhwc pad=1 "
                         "fast")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::tensor_f16_sums_test
