// Estimates of kernels on tensor cores: what blocks ask of an SM's units, what their stages hide, and which tilings are
// chosen for it.
#include "contraction/tensor_estimate.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "conv/conv_contractions.h"
#include "kiln/templates/catalogue.h"

namespace kiln::tensor_estimate_test {
namespace {

using namespace descriptor;

constexpr DeviceFigures a100{.sms = 108, .clock_hz = 1.41e9, .dram_bytes_per_second = 2.0e12, .l2_bytes = 40 << 20};
constexpr DeviceFigures l40s{.sms = 142, .clock_hz = 2.52e9, .dram_bytes_per_second = 0.86e12, .l2_bytes = 96 << 20};

Contraction forward(const std::string& operands) {
  return forward_contractions(Request::parse("conv_forward " + operands)).main();
}

// One of so many blocks: 1000 are ten for each SM.
BlockWork work_of(const TensorTiling& tiling, const Contraction& contraction, Bring bring = Bring::copied,
                  Results results = Results::finished, double blocks = 1000) {
  return tensor_block_work(tiling, contraction, bring, Arch::of(8, 0), a100,
                           static_cast<double>(contraction.chunks(tiling.block_k)), blocks, results);
}

constexpr TensorTiling usual{128, 128, 32, 64, 64, 3};
const std::string layer = "x=bf16:32x128x28x28:nhwc w=bf16:128x128x3x3:nhwc pad=1";

TEST(TensorWork, StagesHideTheLatencyOfCopies) {
  const Contraction contraction = forward(layer);
  TensorTiling two = usual, four = usual;
  two.stages = 2;
  four.stages = 4;
  const double of_two = work_of(two, contraction).latency_clocks, of_three = work_of(usual, contraction).latency_clocks;
  EXPECT_GT(of_two, 1.2 * of_three);
  EXPECT_GE(of_three, work_of(four, contraction).latency_clocks);
  TensorTiling staged = usual;
  staged.stages = 1;
  EXPECT_GT(work_of(staged, contraction, Bring::staged).latency_clocks, of_two) << "loads are one chunk ahead";
}

// 72 chunks of four steps, whose sums wait for one another however few a warp has.
TEST(TensorWork, AWarpThatIsAloneWaitsForItsProducts) {
  const Contraction contraction = forward("x=bf16:1x512x14x14:nhwc w=bf16:512x512x3x3:nhwc pad=1");
  const TensorTiling small{32, 32, 64, 16, 32, 6}, smaller{32, 32, 64, 16, 16, 6};
  const auto clocks = [&](const TensorTiling& tiling) {
    return work_of(tiling, contraction, Bring::copied, Results::finished, 112).latency_clocks;
  };
  EXPECT_GT(clocks(small), 72 * (4 * 33 + 80));
  EXPECT_GT(clocks(smaller), 72 * (4 * 33 + 80)) << "half of the products take as long";
}

TEST(TensorWork, NeighbouringTapsMeetInWhatSharedMemoryLeavesOfL1) {
  const Contraction taps = forward(layer), one_tap = forward("x=bf16:32x1152x28x28:nhwc w=bf16:128x1152x1x1:nhwc");
  const TensorTiling tiling{128, 32, 32, 32, 32, 2};
  const auto bytes = [&](const Contraction& contraction, double blocks) {
    return work_of(tiling, contraction, Bring::copied, Results::finished, blocks).l2_bytes;
  };
  EXPECT_LT(bytes(taps, 100), 0.5 * bytes(one_tap, 100)) << "one block on an SM";
  EXPECT_LT(bytes(taps, 100), 0.7 * bytes(taps, 1000)) << "several blocks share L1";
}

TEST(TensorWork, RunsThatBeginWithinASectorTouchOneMore) {
  const Contraction as_promised = forward("x=bf16:32x128x28x28:nhwc@128 w=bf16:128x128x3x3:nhwc@128 pad=1");
  const double more = work_of(usual, forward(layer)).l2_bytes / work_of(usual, as_promised).l2_bytes;
  EXPECT_GT(more, 1.2) << "three sectors for 64 bytes";
  EXPECT_LT(more, 1.5);
}

TEST(TensorWork, HalfLinesOfPixelsMeetInBanks) {
  TensorTiling whole = usual;
  whole.block_k = 64;
  const Contraction contraction = forward(layer);
  EXPECT_GT(work_of(usual, contraction).shared_wavefronts, 1.1 * work_of(whole, contraction).shared_wavefronts);
  EXPECT_LT(work_of(usual, contraction).shared_wavefronts, 1.5 * work_of(whole, contraction).shared_wavefronts);
  // Pixels of 32 channels stand side by side, so that two of them fill a line.
  const Contraction narrow = forward("x=bf16:32x32x28x28:nhwc w=bf16:128x32x3x3:nhwc pad=1");
  const double four = work_of(usual, contraction).shared_wavefronts, one = work_of(usual, narrow).shared_wavefronts;
  EXPECT_GT(four, 4 * (one - 128 * 128 * 6 / 128) * 1.1);
}

TEST(TensorWork, PartsOfSumsAreStoredInHalfSectors) {
  TensorTiling tiling = usual;
  const Contraction contraction = forward(layer);
  const double finished = work_of(tiling, contraction).l2_bytes;
  const double parts = work_of(tiling, contraction, Bring::copied, Results::parts).l2_bytes;
  EXPECT_NEAR(parts - finished, 128 * 128 * (8 - 2 * 1.25), 128 * 128 * 0.5);
}

// With four tiles b comes once, a and c four times; what a block waits for first comes once.
TEST(TensorWork, OfSeveralTilesBringsFiltersOnce) {
  TensorTiling one{64, 64, 64, 32, 64, 3}, four = one;
  four.tiles = 4;
  const Contraction contraction = forward("x=bf16:32x128x56x56:nhwc w=bf16:64x128x1x1:nhwc");
  EXPECT_EQ(shared_bytes(one, contraction), 3 * 128 * 128);
  EXPECT_EQ(shared_bytes(four, contraction), 3 * 64 * 128 + 2 * 64 * 128 + 2 * 16 * 72 * 4);
  const BlockWork of_one = work_of(one, contraction), of_four = work_of(four, contraction);
  EXPECT_EQ(of_four.fma, 4 * of_one.fma);
  EXPECT_NEAR(4 * of_one.l2_bytes - of_four.l2_bytes, 3 * 2 * 64 * 128 * 1.25, 64 * 128) << "three times all of b";
  EXPECT_LT(of_four.latency_clocks, 4 * of_one.latency_clocks - 3 * 1300);
  EXPECT_LE(of_four.stall_clocks, of_one.stall_clocks);
}

// Sums are put and taken as f32 where something is added to them, else as what is stored.
TEST(TensorWork, ResultsOfSumsAlonePassSharedMemoryRounded) {
  const auto passes = [](const std::string& more, Results results = Results::finished) {
    return work_of(usual, forward(layer + more), Bring::copied, results).shared_wavefronts;
  };
  const double bytes = 128 * 128 / 128;
  EXPECT_NEAR(passes(" epilogue=bias") - passes(""), 4 * bytes, 1e-6);
  EXPECT_NEAR(passes(" epilogue=add") - passes(""), 4 * bytes, 1e-6);
  EXPECT_NEAR(passes(" beta=any") - passes(""), 4 * bytes, 1e-6);
  EXPECT_NEAR(passes(" epilogue=relu alpha=any") - passes(""), 0, 1e-6);
  EXPECT_NEAR(passes("", Results::parts) - passes(""), 6 * bytes, 1e-6);
}

// A grid that fills an A100 many times, bound by one thing.
GridWork bound_by(double BlockWork::*amount, double value) {
  GridWork work;
  work.blocks = 108 * 64;
  work.block.threads = 256;
  work.block.math = MathClass::tensor_f16;
  work.block.*amount = value;
  return work;
}

TEST(TensorEstimate, GrowsWithWhatIsTheBottleneck) {
  const auto seconds = [](const GridWork& work) { return tensor_estimate(work, Arch::of(8, 0), a100).seconds; };
  using Amount = double BlockWork::*;
  const std::vector<std::pair<Amount, double>> all = {{&BlockWork::fma, 1e6},
                                                      {&BlockWork::instructions, 1e5},
                                                      {&BlockWork::shared_wavefronts, 1e5},
                                                      {&BlockWork::l2_bytes, 1e7},
                                                      {&BlockWork::latency_clocks, 1e6}};
  for (const auto& [amount, value] : all) {
    const double once = seconds(bound_by(amount, value)), twice = seconds(bound_by(amount, 2 * value));
    EXPECT_GT(twice, 1.9 * once);
    EXPECT_LT(twice, 2.1 * once);
  }
  GridWork moving = bound_by(&BlockWork::fma, 1);
  moving.dram_bytes = 4e9;
  EXPECT_GE(seconds(moving), 4e9 / a100.dram_bytes_per_second);
}

TEST(TensorEstimate, BlocksBesideEachOtherHideBeginnings) {
  GridWork work = bound_by(&BlockWork::shared_wavefronts, 1000);
  work.block.stall_clocks = work.block.latency_clocks = 5000;
  const double many = tensor_estimate(work, Arch::of(8, 0), a100).seconds;
  work.block.shared_bytes = 150 * 1024;
  EXPECT_GT(tensor_estimate(work, Arch::of(8, 0), a100).seconds, 3 * many) << "one block on an SM";
}

TEST(TensorEstimate, TheSchedulerWithTheMostWarpsIsDoneLast) {
  GridWork work = bound_by(&BlockWork::fma, 1e6);
  work.blocks = 108;
  work.block.threads = 128;
  const double four = tensor_estimate(work, Arch::of(8, 0), a100).seconds;
  work.block.threads = 64;
  EXPECT_GT(tensor_estimate(work, Arch::of(8, 0), a100).seconds, 1.8 * four) << "two schedulers have nothing";
}

TEST(TensorEstimate, TakesTheRateOfTensorCoresThatWasMeasured) {
  const Arch ada = Arch::of(8, 9), hopper = Arch::of(9, 0);
  EXPECT_EQ(reached_products(ada, MathClass::tensor_f16, {}), 512);
  EXPECT_EQ(reached_products(ada, MathClass::tensor_f16, {.f16_efficiency = 0.5}), 256);
  EXPECT_EQ(reached_products(ada, MathClass::tensor_tf32, {.f16_efficiency = 0.5}), 256) << "its own";
  EXPECT_EQ(reached_products(hopper, MathClass::tensor_f16, {}), 0.64 * 2048) << "by mma.sync";
  EXPECT_EQ(reached_products(hopper, MathClass::f32_lanes, {}), 128);
  GridWork work = bound_by(&BlockWork::fma, 1e6);
  work.block.math = MathClass::tensor_f16;
  DeviceFigures measured = l40s;
  measured.calibration.f16_efficiency = 0.5;
  EXPECT_GT(tensor_estimate(work, ada, measured).seconds, 1.9 * tensor_estimate(work, ada, l40s).seconds);
  EXPECT_DOUBLE_EQ(grid_estimate(work, ada, measured).math, 2 * grid_estimate(work, ada, l40s).math);
}

TEST(TensorEstimate, PrefersSumsOfF16WhereThoseOfF32AreSlow) {
  static const Catalogue catalogue = make_catalogue(embedded_sources());
  const auto best = [](const std::string& words, double of_f32_sums) {
    DeviceFigures device = l40s;
    device.calibration.f16_efficiency = of_f32_sums;
    const std::string product = "gemm a=f16:4096x4096 b=f16:4096x4096 " + words;
    return catalogue.heuristic(Request::parse(product), {Arch::of(8, 9), 13, 0}, device).algorithm;
  };
  EXPECT_EQ(best("fast", 0.5), "gemm_tensor_f16_sums");
  EXPECT_EQ(best("fast", 1), "gemm_tensor") << "additions beside the products cost time";
  EXPECT_EQ(best("", 0.5), "gemm_tensor");
}

TEST(TensorEstimate, TakesTheRateOfL2ThatWasMeasured) {
  EXPECT_EQ(with_rate_of_l2(l40s, Arch::of(8, 9)).calibration.l2_bytes_per_clock, 16);
  DeviceFigures measured = l40s;
  measured.calibration.l2_bytes_per_clock = 14;
  EXPECT_EQ(with_rate_of_l2(measured, Arch::of(8, 9)).calibration.l2_bytes_per_clock, 14);
  const GridWork work = bound_by(&BlockWork::l2_bytes, 1e7);
  EXPECT_GT(tensor_estimate(work, Arch::of(8, 9), measured).seconds,
            1.1 * tensor_estimate(work, Arch::of(8, 9), l40s).seconds);
}

// Defaults of docs/kernels.md rest on this: tiles are as large as the grid allows.
TEST(TensorEstimate, PrefersLargeTilesWhereTheGridIsLarge) {
  static const Catalogue catalogue = make_catalogue(embedded_sources());
  const auto config = [](const std::string& request) {
    const Choice choice = catalogue.heuristic(Request::parse(request), {Arch::of(8, 0), 13, 0}, a100);
    EXPECT_EQ(choice.algorithm, "conv_tensor") << request;
    return choice.config;
  };
  const Config large = config("conv_forward " + layer);
  EXPECT_GE(*large.find("BLOCK_M") * *large.find("BLOCK_N"), 128 * 128) << large.print();
  const Config small = config("conv_forward x=bf16:8x1024x14x14:nhwc w=bf16:256x1024x1x1:nhwc");
  EXPECT_LT(*small.find("BLOCK_M") * *small.find("BLOCK_N"), 128 * 128) << small.print();
}

TEST(TensorStreamEstimate, ReadsOperandsBeyondL2Again) {
  static const Catalogue catalogue = make_catalogue(embedded_sources());
  const auto seconds = [&](const std::string& request, const std::string& shared, int64_t l2_bytes) {
    DeviceFigures device = a100;
    device.l2_bytes = l2_bytes;
    const Config config = Config::parse("BLOCK_K=32,BLOCK_M=128,BLOCK_N=128,STAGES=4,WARP_M=64,WARP_N=64," + shared);
    return catalogue.find("conv_backward_filter_tensor_splitk")
        ->on(Request::parse("conv_backward_filter " + request), Target{Arch::of(8, 0), 13, 0})
        .estimate(config, device)
        .seconds;
  };
  const std::string large =
      "x=bf16:256x128x80x80:nhwc dy=bf16:256x256x40x40:nhwc dw=bf16:256x128x3x3:nhwc pad=1 stride=2";
  const std::string small = "x=bf16:1x128x56x56:nhwc dy=bf16:1x128x56x56:nhwc dw=bf16:128x128x3x3:nhwc pad=1";
  const std::string evenly = "BLOCKS=104,SPLIT_K=1", in_parts = "BLOCKS=0,SPLIT_K=12";
  EXPECT_GT(seconds(large, evenly, a100.l2_bytes), 1.5 * seconds(large, evenly, int64_t{4} << 30));
  EXPECT_LT(seconds(large, in_parts, a100.l2_bytes), 0.7 * seconds(large, evenly, a100.l2_bytes));
  EXPECT_EQ(seconds(small, evenly, a100.l2_bytes), seconds(small, evenly, int64_t{4} << 30));
}

}  // namespace
}  // namespace kiln::tensor_estimate_test
