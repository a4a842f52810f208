// Registers that tilings on tensor cores are taken to need, worked out by hand.
#include "contraction/tensor_tiling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "conv/conv_contractions.h"
#include "kiln/generator/request.h"

namespace kiln::tensor_tiling_test {
namespace {

using descriptor::Bring;
using descriptor::Contraction;
using descriptor::TensorTiling;

Contraction forward(const std::string& operands) {
  return descriptor::forward_contractions(Request::parse("conv_forward " + operands)).main();
}

Contraction backward_data(const std::string& operands) {
  return descriptor::data_contractions(Request::parse("conv_backward_data " + operands)).main();
}

int result_run(const std::string& operands, Bring bring) {
  const descriptor::Contractions gradient =
      descriptor::filter_contractions(Request::parse("conv_backward_filter " + operands));
  return descriptor::tensor_access(gradient.main(), bring).c_run;
}

int registers(const TensorTiling& tiling, const Contraction& contraction, int arch, Bring bring = Bring::staged) {
  return descriptor::tensor_registers(tiling, contraction, bring, Arch::of(arch / 10, arch % 10));
}

// 128 sums, 30 for counters and places, 32 for fragments; 32 elements of x on their way, 4 runs of 8 elements of w in 4
// words each, 2 for each of these runs, 3 for the pixel.
constexpr TensorTiling large{128, 128, 32, 64, 64, 2};
constexpr int of_large = 128 + 30 + 32 + 32 + 4 * 4 + 4 * 2 + 3;

TEST(TensorRegisters, HoldHalfOfTheAddressesOfAGatheredOperand) {
  const Contraction nchw = forward("x=f16:32x128x28x28 w=f16:128x128x3x3 pad=1");
  EXPECT_EQ(registers(large, nchw, 80), of_large + 16);
  EXPECT_EQ(registers(large, nchw, 120), of_large + 16);
}

TEST(TensorRegisters, HoldAllAddressesBefore80) {
  EXPECT_EQ(registers(large, forward("x=f16:32x128x28x28 w=f16:128x128x3x3 pad=1"), 75), of_large + 32);
  // The data gradient's filters go down the columns of w, an element at a time: 4 warps have 2048 elements of dy and
  // 2048 of w for a chunk.
  constexpr TensorTiling small{64, 64, 32, 32, 32, 2};
  constexpr int of_small = 32 + 30 + 16 + 16 + 16 + 2 * 16 + 3;
  const Contraction gradient = backward_data("dy=f16:32x128x28x28 w=f16:128x128x3x3 pad=1");
  EXPECT_EQ(registers(small, gradient, 80), of_small + 8);
  EXPECT_EQ(registers(small, gradient, 75), of_small + 16 + 16);
}

TEST(TensorRegisters, HoldDistancesOfChunksThatAreAlike) {
  // 32 rows are eight filters of 2x2: 32 distances of 64 bits, and a word of taps.
  const Contraction even = forward("x=f16:32x128x28x28 w=f16:128x128x2x2 stride=2");
  for (const int arch : {75, 80}) EXPECT_EQ(registers(large, even, arch), of_large + 2 * 32 + 1) << arch;
  // 256 pixels and 128 threads: a thread has two columns.
  constexpr TensorTiling two_columns{256, 32, 32, 64, 32, 1};
  EXPECT_EQ(registers(two_columns, even, 80), 64 + 30 + 24 + 64 + 4 + 2 + 3 + 2 * 64 + 2);
}

TEST(TensorRegisters, OfRunsNeedNoMore) {
  const Contraction nhwc = forward("x=f16:32x128x28x28:nhwc w=f16:128x128x3x3:nhwc pad=1");
  // 4 runs of 8 elements of each operand.
  EXPECT_EQ(registers(large, nhwc, 80), 128 + 30 + 32 + 4 * 4 + 3 * 4 + 4 * 4 + 2 * 4);
  EXPECT_EQ(registers(large, nhwc, 75), registers(large, nhwc, 80));
  EXPECT_EQ(registers(large, nhwc, 80, Bring::copied), 128 + 30 + 2 * 32 + 2 * 4 + 4);
}

TEST(TensorAccess, StoresChannelsUnderATapInRuns) {
  for (const Bring bring : {Bring::copied, Bring::staged}) {
    EXPECT_EQ(result_run("x=f16:2x24x9x7:nhwc dy=f16:2x72x9x7:nhwc dw=f16:72x24x3x3:nhwc pad=1", bring), 8);
    EXPECT_EQ(result_run("x=f16:2x20x9x7:nhwc dy=f16:2x72x9x7:nhwc dw=f32:72x20x3x3:nhwc pad=1", bring), 4);
    EXPECT_EQ(result_run("x=f16:2x24x9x7:nhwc dy=f16:2x72x9x7:nhwc dw=f16:72x24x3x3 pad=1", bring), 1)
        << "taps stand side by side";
    EXPECT_EQ(result_run("x=f16:2x24x9x7:nhwc dy=f16:2x72x9x7:nhwc dw=f16:72x24x1x1", bring), 8) << "of one tap";
    EXPECT_EQ(result_run("x=f16:2x23x9x7:nhwc dy=f16:2x72x9x7:nhwc dw=f16:72x23x1x1", bring), 1);
  }
}

TEST(TensorRegisters, DecideWhichTilingsAreLegal) {
  const Target ampere{Arch::of(8, 0), 13, 0};
  const Contraction nchw = forward("x=f16:32x128x28x28 w=f16:128x128x3x3 pad=1");
  EXPECT_FALSE(descriptor::tensor_registers_suffice(large, nchw, Bring::staged, ampere)) << "265 of 255";
  constexpr TensorTiling eight_warps{128, 128, 32, 64, 32, 2};
  EXPECT_TRUE(descriptor::tensor_registers_suffice(eight_warps, nchw, Bring::staged, ampere));
}

// 4 warps of 64 x 32 sums with 2 runs of 16 elements of x a thread, 2 of w, and 48 registers of fragments.
TEST(TensorRegisters, OfFp8HoldSumsOfSingleStepsOrUnpackedFragments) {
  constexpr TensorTiling tiling{128, 64, 64, 64, 32, 3};
  constexpr int of_f16 = 64 + 30 + 2 * 24 + 4 * 2 + 2;
  const std::string operands = "x=f8e4m3:8x64x9x7:nhwc w=f8e4m3:64x64x3x3:nhwc pad=1";
  EXPECT_EQ(registers(tiling, forward(operands), 89, Bring::copied), of_f16 + 64) << "of both steps of a chunk, half";
  EXPECT_EQ(registers(tiling, forward(operands + " fast"), 89, Bring::copied), of_f16);
  EXPECT_EQ(registers(tiling, forward(operands), 90, Bring::copied), of_f16 + 24);
}

// Data of checks cannot tell: their bounds have room for long sums of 13 bits.
TEST(TensorFactor, SumsOfFp8ArePromotedUnlessTheRequestIsFast) {
  const auto declared = [](const Arithmetic& arithmetic) {
    Prelude prelude;
    descriptor::add_tensor_factor(prelude, DType::f8e4m3, arithmetic);
    return prelude.text();
  };
  EXPECT_NE(declared({}).find("constexpr bool PROMOTES = true;"), std::string::npos);
  EXPECT_NE(declared({.fast = true}).find("constexpr bool PROMOTES = false;"), std::string::npos);
}

TEST(TensorFactor, IsTheWiderTypeAndF16WhereFp8DoesNotRunAlongTheDepth) {
  EXPECT_EQ(descriptor::tensor_factor(forward("x=f8e5m2:2x64x9x7:nhwc w=f8e4m3:64x64x3x3:nhwc")), DType::f8e5m2);
  EXPECT_EQ(descriptor::tensor_factor(forward("x=f8e5m2:2x64x9x7 w=f8e4m3:64x64x3x3:nhwc")), DType::f16);
  EXPECT_EQ(descriptor::tensor_factor(forward("x=f8e5m2:2x64x9x7:nhwc w=bf16:64x64x3x3:nhwc")), DType::bf16);
  EXPECT_EQ(descriptor::tensor_factor(forward("x=f32:2x64x9x7:nhwc w=f8e4m3:64x64x3x3:nhwc tf32")), DType::f32);
}

TEST(TensorFactor, OfIntegersIsTheirOwn) {
  EXPECT_EQ(descriptor::tensor_factor(forward("x=u8:2x64x9x7:nhwc w=i8:64x64x3x3:nhwc")), DType::u8);
  EXPECT_EQ(descriptor::tensor_factor(forward("x=bf16:2x64x9x7:nhwc w=i8:64x64x3x3:nhwc")), DType::bf16);
  EXPECT_EQ(descriptor::tensor_factor(forward("x=f8e4m3:2x64x9x7:nhwc w=i8:64x64x3x3:nhwc")), DType::f16);
}

TEST(TensorFactor, OfIntegersIsRefusedWhereSumsMightNotFitOrElementsWouldBeTurned) {
  const auto refusal = [](const std::string& operands, int arch = 80, Bring bring = Bring::staged) {
    return descriptor::tensor_refusal(forward(operands), {"x", "w", "y"}, bring,
                                      Target{Arch::of(arch / 10, arch % 10), 13, 0});
  };
  const auto deep = [&](const char* x, const char* w, int channels) {
    return refusal(fmt::format("x={}:1x{}x1x1:nhwc w={}:8x{}x1x1:nhwc", x, channels, w, channels));
  };
  EXPECT_EQ(deep("i8", "i8", 131071), std::nullopt);
  EXPECT_EQ(deep("i8", "i8", 131072), "sums of more than 131071 products may not fit into 32 bits");
  EXPECT_EQ(deep("u8", "i8", 65793), std::nullopt);
  EXPECT_EQ(deep("i8", "u8", 65794), "sums of more than 65793 products may not fit into 32 bits");
  EXPECT_EQ(deep("u8", "u8", 33025), std::nullopt);
  EXPECT_EQ(deep("u8", "u8", 33026), "sums of more than 33025 products may not fit into 32 bits");
  const std::string along = "x=i8:2x64x9x7:nhwc w=i8:64x64x3x3:nhwc", nchw = "x=i8:2x64x9x7 w=i8:64x64x3x3:nhwc";
  EXPECT_EQ(refusal(along, 80, Bring::copied), std::nullopt);
  EXPECT_EQ(refusal(along, 75), "tensor cores multiply 8-bit integers from sm_80 on");
  EXPECT_EQ(refusal(nchw),
            "the summed dimension is not innermost in both of x and w, and elements of 8 bits are not turned");
  EXPECT_EQ(refusal("x=f16:2x64x9x7 w=i8:64x64x3x3:nhwc"), std::nullopt) << "in f16, which is turned";
}

TEST(TensorRegisters, OfIntegersAreThoseOfF16) {
  constexpr TensorTiling tiling{128, 64, 64, 64, 32, 3};
  for (const int arch : {80, 89, 90}) {
    EXPECT_EQ(registers(tiling, forward("x=i8:8x64x9x7:nhwc w=u8:64x64x3x3:nhwc pad=1"), arch, Bring::copied),
              64 + 30 + 2 * 24 + 4 * 2 + 2);
  }
}

TEST(TensorF16Sums, AreOfFactorsInF16WhereTheRequestIsFast) {
  const auto refusal = [](const std::string& operands) {
    Contraction contraction = forward(operands);
    contraction.f16_sums = true;
    return descriptor::tensor_refusal(contraction, {"x", "w", "y"}, Bring::staged, Target{Arch::of(8, 9), 13, 0});
  };
  EXPECT_EQ(refusal("x=f16:2x64x9x7 w=f16:64x64x3x3 fast"), std::nullopt);
  EXPECT_EQ(refusal("x=f16:2x64x9x7 w=f16:64x64x3x3"),
            "sums are in f16, which the request does not permit: `fast` would");
  for (const char* others : {"x=bf16:2x64x9x7 w=bf16:64x64x3x3 fast", "x=f16:2x64x9x7 w=f8e4m3:64x64x3x3 fast",
                             "x=f32:2x64x9x7 w=f32:64x64x3x3 fast tf32"}) {
    EXPECT_EQ(refusal(others), "tensor cores add products in f16 where both factors are f16") << others;
  }
}

TEST(TensorRegisters, OfF16SumsHoldThoseOfSteps) {
  Contraction contraction = forward("x=f16:32x128x28x28:nhwc w=f16:128x128x3x3:nhwc pad=1 fast");
  const int of_f32_sums = registers(large, contraction, 80, Bring::copied);
  contraction.f16_sums = true;
  EXPECT_EQ(registers(large, contraction, 80, Bring::copied), of_f32_sums + 16);
}

TEST(TensorFactor, OfFp8IsRefusedToCopiesThatWouldHaveToChangeIt) {
  const auto refusal = [](const std::string& operands, Bring bring) {
    return descriptor::tensor_refusal(forward(operands), {"x", "w", "y"}, bring, Target{Arch::of(8, 9), 13, 0});
  };
  const std::string beside_f16 = "x=f16:2x64x9x7:nhwc w=f8e4m3:64x64x3x3:nhwc";
  EXPECT_EQ(refusal(beside_f16, Bring::copied),
            "elements of x have 16 bits and those of w 8, and copies do not change them");
  EXPECT_EQ(refusal(beside_f16, Bring::staged), std::nullopt);
  const std::string nchw = "x=f8e4m3:2x64x9x7 w=f8e4m3:64x64x3x3:nhwc";
  EXPECT_EQ(refusal(nchw, Bring::copied),
            "elements of 8 bits are copied where both x and w are fp8, or both integers, and the summed dimension is "
            "innermost in both");
  EXPECT_EQ(refusal(nchw, Bring::staged), std::nullopt);
  EXPECT_EQ(refusal("x=f8e4m3:2x66x9x7:nhwc w=f8e4m3:64x66x3x3:nhwc", Bring::copied),
            "the summed dimension of x is not innermost, or not in fours at 4-byte addresses");
}

}  // namespace
}  // namespace kiln::tensor_tiling_test
