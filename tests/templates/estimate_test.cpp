// Estimates order what is physically certain: more to do is never faster, and where it is the bottleneck slower; no
// candidate moves its bytes, those of a workspace included, in less time than the memory takes for them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "contraction/block_estimate.h"
#include "contraction/simt_tiling.h"
#include "conv/conv_contractions.h"
#include "descriptor/occupancy.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/roofline.h"
#include "kiln/templates/catalogue.h"

namespace kiln::estimate_test {
namespace {

using descriptor::BlockWork;
using descriptor::GridWork;
using descriptor::resident_blocks;
using descriptor::StreamingWork;

constexpr DeviceFigures h200{.sms = 132, .clock_hz = 1.98e9, .dram_bytes_per_second = 4.8e12, .l2_bytes = 60 << 20};

const Catalogue& catalogue() {
  static const Catalogue built_in = make_catalogue(embedded_sources());
  return built_in;
}

Target target() {
  return {Arch::of(9, 0), 13, 0};
}

// A change for the worse, and work that it is the bottleneck of.
template <class Work>
struct Worse {
  const char* what;
  Work work;
  std::function<void(Work&)> change;
};

StreamingWork copying() {
  StreamingWork work;
  work.dram_bytes = 4e9;
  work.threads = 1 << 26;
  work.blocks = 1 << 18;
  work.threads_per_block = 256;
  work.instructions_per_thread = 20;
  return work;
}

// Few loads under way: how many blocks an SM holds decides how much of the bandwidth they draw.
StreamingWork waiting_for_memory() {
  StreamingWork work = copying();
  work.bytes_in_flight_per_thread = 4;
  return work;
}

std::vector<Worse<StreamingWork>> worse_streams() {
  StreamingWork cached = copying();
  cached.dram_bytes = 1e6;
  cached.cache_bytes = 1e12;
  StreamingWork counting = cached;
  counting.cache_bytes = 0;
  counting.instructions_per_thread = 1000;
  StreamingWork small;
  return {
      {"bytes of device memory", copying(), [](auto& work) { work.dram_bytes *= 2; }},
      {"bytes of caches", cached, [](auto& work) { work.cache_bytes *= 2; }},
      {"instructions", counting, [](auto& work) { work.instructions_per_thread *= 2; }},
      {"threads", counting, [](auto& work) { work.threads *= 2, work.blocks *= 2; }},
      {"registers, half of the blocks resident", waiting_for_memory(),
       [](auto& work) { work.registers_per_thread = 64; }},
      {"registers, a quarter", waiting_for_memory(), [](auto& work) { work.registers_per_thread = 128; }},
      {"shared memory", waiting_for_memory(), [](auto& work) { work.shared_bytes_per_block = 48 * 1024; }},
      {"fewer loads under way", waiting_for_memory(), [](auto& work) { work.bytes_in_flight_per_thread /= 2; }},
      {"launches", small, [](auto& work) { work.launches *= 2; }},
      {"the same on half of the SMs", cached, [](auto& work) { work.blocks = 66, work.threads_per_block = 1024; }},
  };
}

TEST(StreamingEstimate, GrowsWithWhatIsTheBottleneck) {
  for (const Worse<StreamingWork>& worse : worse_streams()) {
    StreamingWork changed = worse.work;
    worse.change(changed);
    const double before = streaming_estimate(worse.work, target().arch, h200).seconds;
    const double after = streaming_estimate(changed, target().arch, h200).seconds;
    EXPECT_GT(after, 1.3 * before) << worse.what;
    EXPECT_LT(after, 5 * before) << worse.what;
  }
}

TEST(StreamingEstimate, CountsWholeSectorsOfNeighboursThatStandApart) {
  EXPECT_EQ(descriptor::lane_bytes(4, 4), 4);
  EXPECT_EQ(descriptor::lane_bytes(4, 8), 8);
  EXPECT_EQ(descriptor::lane_bytes(4, 1000), 32);
  EXPECT_EQ(descriptor::lane_bytes(16, 2), 16);
}

// A clock of L1 is worth 4.
TEST(GridEstimate, TheFullestBankCountsOfWordsThatLanesLoad) {
  using descriptor::access_at_pitch, descriptor::access_of;
  EXPECT_EQ(access_at_pitch(0, 4).l1, 4) << "all lanes load one word";
  EXPECT_EQ(access_at_pitch(2, 2).l1, 4);
  EXPECT_EQ(access_at_pitch(4, 4).l1, 4);
  EXPECT_EQ(access_at_pitch(16, 16).l1, 16) << "512 bytes";
  EXPECT_EQ(access_at_pitch(128, 4).l1, 128) << "all in one bank";
  EXPECT_EQ(access_at_pitch(128, 4, 8).l1, 32) << "eight lanes";
  EXPECT_EQ(access_at_pitch(132, 4).l1, 4) << "each in a bank of its own";
  const std::array<int64_t, 4> lanes = {0, 4, 128, 256};
  EXPECT_EQ(access_of(lanes, 4).l1, 12);
  EXPECT_EQ(access_of(lanes, 4).sectors, 3);
  EXPECT_EQ(access_at_pitch(4, 4).sectors, 4);
}

// Work of a grid that fills the device many times, each block bound by one thing.
GridWork bound_by(double BlockWork::*amount, double value) {
  GridWork work;
  work.blocks = 132 * 64;
  work.block.threads = 256;
  work.block.*amount = value;
  return work;
}

// Blocks beside each other hide what all warps of one wait for.
TEST(GridEstimate, StallsAreHiddenByOtherBlocks) {
  GridWork work = bound_by(&BlockWork::stall_clocks, 1e6);
  const double many = grid_estimate(work, target().arch, h200).seconds;
  work.block.shared_bytes = 100 * 1024;
  const double two = grid_estimate(work, target().arch, h200).seconds;
  EXPECT_GT(two, 4 * many);
  work.block.shared_bytes = 200 * 1024;
  EXPECT_GT(grid_estimate(work, target().arch, h200).seconds, 3.5 * two) << "half the blocks, each waits twice as long";
}

TEST(GridEstimate, TheSchedulerWithTheMostWarpsIsDoneLast) {
  GridWork work = bound_by(&BlockWork::instructions, 4e5);
  work.blocks = 132;
  work.block.threads = 128;
  const double four = grid_estimate(work, target().arch, h200).seconds;
  work.block.instructions = 5e5;
  work.block.threads = 160;
  EXPECT_GT(grid_estimate(work, target().arch, h200).seconds, 1.5 * four) << "two warps of five have one scheduler";
}

TEST(GridEstimate, UnevenBlocksCountWhereAnSmHasFew) {
  const auto ratio = [](double blocks) {
    GridWork even = bound_by(&BlockWork::instructions, 1e6), light = even, heavy = even;
    even.blocks = 2 * blocks;
    light.blocks = heavy.blocks = blocks;
    light.block.instructions = 0.5e6;
    heavy.block.instructions = 1.5e6;
    return grid_estimate(descriptor::side_by_side({light, heavy}), target().arch, h200).seconds /
           grid_estimate(even, target().arch, h200).seconds;
  };
  EXPECT_GT(ratio(132), 1.1);
  EXPECT_LT(ratio(132), 1.25);
  EXPECT_LT(ratio(132 * 64), 1.01);
  EXPECT_GT(ratio(132 * 64), 0.99);
}

TEST(GridEstimate, BlocksBesideEachOtherCountAsTheMeanOne) {
  GridWork one = bound_by(&BlockWork::instructions, 100), three = one, none = one;
  one.blocks = 10;
  three.blocks = 30;
  none.blocks = 0;
  one.block.code_instructions = one.block.stall_clocks = one.block.latency_clocks = one.block.chain_clocks = 400;
  three.block.registers = 90;
  three.block.shared_bytes = 1024;
  none.block.instructions = none.block.latency_clocks = 1e9;
  const GridWork all = descriptor::side_by_side({one, three, none});
  EXPECT_EQ(all.blocks, 40);
  EXPECT_EQ(all.block.instructions, 100);
  EXPECT_EQ(all.block.code_instructions, 100);
  EXPECT_EQ(all.block.stall_clocks, 100);
  EXPECT_EQ(all.block.chain_clocks, 100);
  EXPECT_EQ(all.block.registers, 90);
  EXPECT_EQ(all.block.shared_bytes, 1024);
  EXPECT_EQ(all.heaviest, 1) << "what has no blocks is not waited for";
  EXPECT_EQ(all.longest_clocks, 400);
}

TEST(GridEstimate, CodeIsWaitedForOnce) {
  const auto seconds = [](double blocks, double code) {
    GridWork work = bound_by(&BlockWork::instructions, 1e4);
    work.blocks = blocks;
    work.block.code_instructions = code;
    return grid_estimate(work, target().arch, h200).seconds;
  };
  EXPECT_NEAR((seconds(132e3, 2000) - seconds(132e3, 0)) / (seconds(132, 2000) - seconds(132, 0)), 1, 0.01);
}

// A scheduler's cache holds 2048 instructions.
TEST(GridEstimate, CodeOfAllKindsOfBlocksIsFetchedAgainWhereItIsTooLong) {
  const auto slowdown = [](double code, size_t kinds, double threads, const Arch& arch) {
    GridWork work = bound_by(&BlockWork::instructions, 1e6);
    work.blocks = 1320;
    work.block.threads = threads;
    work.block.code_instructions = code;
    GridWork others = work;
    work.blocks -= 10 * (static_cast<double>(kinds) - 1);
    others.blocks = 10;
    std::vector<GridWork> works(kinds, others);
    works.front() = work;
    const GridWork all = descriptor::side_by_side(works);
    work.blocks = 1320;
    return grid_estimate(all, arch, h200).seconds / grid_estimate(work, arch, h200).seconds;
  };
  const Arch hopper = Arch::of(9, 0);
  EXPECT_NEAR(slowdown(1000, 2, 64, hopper), 1, 0.001);
  EXPECT_GT(slowdown(1000, 3, 64, hopper), 1.1);
  EXPECT_GT(slowdown(1000, 8, 64, hopper), slowdown(1000, 3, 64, hopper));
  EXPECT_LT(slowdown(1000, 8, 512, hopper), slowdown(1000, 8, 64, hopper)) << "warps share lines";
  EXPECT_NEAR(slowdown(1000, 8, 64, Arch::of(8, 0)), 1, 0.001) << "lines come in a quarter of the time";
}

// The estimate of the configuration that a kernel tries first.
double seconds_of(const char* algorithm, const std::string& line) {
  const Request request = Request::parse(line);
  const BoundAlgorithm bound = catalogue().find(algorithm)->on(request, target());
  return bound.estimate(bound.legal().front(), h200).seconds;
}

TEST(DirectEstimate, CountsTheSectorsThatFiltersAndOutputsTouch) {
  const auto pixels = [](const std::string& w) {
    return seconds_of("conv_direct", "conv_forward x=f32:8192x512x1x1 w=f32:64x512x1x1:" + w);
  };
  EXPECT_GT(pixels("131072,256,1,1"), pixels("512,1,1,1") * 1.1) << "neighbours of a filter stand 1 KB apart";
  const auto forward = [](const std::string& y) {
    return seconds_of("conv_direct", "conv_forward x=f32:8x64x64x64 w=f32:64x64x1x1 y=f32:8x64x64x64:" + y);
  };
  EXPECT_GT(forward("2097152,32768,512,8"), forward("262144,4096,64,1") * 1.1) << "each in a sector of its own";
}

// 12 loads are under way at most: two channels of the four rows that a thread meets.
TEST(DirectEstimate, WaitsForChannelsThatNoBlockHasHad) {
  const auto seconds = [](const char* channels) {
    const std::string c = channels;
    return seconds_of("conv_direct", "conv_forward x=f32:8x" + c + "x56x56 w=f32:64x" + c + "x1x1");
  };
  const double waits = 400 * (256 - 128) / 2 / h200.clock_hz;
  EXPECT_GT(seconds("256") - seconds("128"), 1.5 * waits);
}

TEST(DepthwiseEstimate, WaitsForTheRowsOfEachPlane) {
  const auto seconds = [](int planes) {
    const std::string t = std::to_string(planes);
    return seconds_of("conv_depthwise_nchw", "conv_forward x=f32:1x1x12x8x8 w=f32:1x1x" + t + "x3x3 pad=1 y=f32:1x1x" +
                                                 std::to_string(15 - planes) + "x8x8");
  };
  EXPECT_GT(seconds(5) - seconds(1), 4 * 3 * 500 / h200.clock_hz);
}

TEST(GridEstimate, LoadsOfTheFirstRoundAreWaitedForOnce) {
  const auto seconds = [](double blocks, double chain, double latency = 0, double code = 0) {
    GridWork work = bound_by(&BlockWork::instructions, 1e5);
    work.blocks = blocks;
    work.block.chain_clocks = chain;
    work.block.latency_clocks = latency;
    work.block.code_instructions = code;
    return grid_estimate(work, target().arch, h200).seconds;
  };
  EXPECT_NEAR(seconds(132, 1e4) - seconds(132, 0), 1e4 / h200.clock_hz, 1e-9);
  EXPECT_NEAR(seconds(132e3, 1e4) - seconds(132e3, 0), 1e4 / h200.clock_hz, 1e-9);
  EXPECT_EQ(seconds(132, 1e4, 1e6), seconds(132, 0, 1e6)) << "latency is longer than both together";
  EXPECT_EQ(seconds(132, 1e4, 0, 1e6), seconds(132, 0, 0, 1e6)) << "meanwhile, code comes from L2";
}

TEST(GridEstimate, TheLongestOfUnevenBlocksIsWaitedFor) {
  GridWork light = bound_by(&BlockWork::latency_clocks, 1e3), heavy = light;
  heavy.blocks = 1;
  heavy.block.latency_clocks = 1e7;
  EXPECT_GT(grid_estimate(descriptor::side_by_side({light, heavy}), target().arch, h200).seconds, 1e7 / h200.clock_hz);
}

TEST(GridEstimate, WhatRunsLaterIsNotHidden) {
  GridWork work = bound_by(&BlockWork::instructions, 1e5);
  const double alone = grid_estimate(work, target().arch, h200).seconds;
  work.extra_dram_bytes = 1e9;
  EXPECT_GT(grid_estimate(work, target().arch, h200).seconds, alone + 1e9 / h200.dram_bytes_per_second);
}

std::vector<Worse<GridWork>> worse_grids() {
  std::vector<Worse<GridWork>> all;
  const auto twice = [&](const char* what, double BlockWork::*amount, double value) {
    all.push_back({what, bound_by(amount, value), [amount](GridWork& work) { work.block.*amount *= 2; }});
  };
  twice("multiplications", &BlockWork::fma, 1e5);
  twice("instructions", &BlockWork::instructions, 1e5);
  twice("wavefronts of shared memory", &BlockWork::shared_wavefronts, 1e5);
  twice("sectors of L1", &BlockWork::global_sectors, 1e6);
  twice("bytes of L2", &BlockWork::l2_bytes, 1e7);
  twice("latency", &BlockWork::latency_clocks, 1e5);
  twice("stalls", &BlockWork::stall_clocks, 1e6);
  twice("code", &BlockWork::code_instructions, 1e6);
  GridWork latency = bound_by(&BlockWork::latency_clocks, 1e5);
  all.push_back({"registers: fewer blocks side by side", latency, [](auto& work) { work.block.registers = 128; }});
  all.push_back(
      {"shared memory: fewer blocks side by side", latency, [](auto& work) { work.block.shared_bytes = 48 * 1024; }});
  all.push_back({"blocks", latency, [](auto& work) { work.blocks *= 2; }});
  GridWork moving = bound_by(&BlockWork::fma, 1);
  moving.dram_bytes = 4e9;
  all.push_back({"bytes of device memory", moving, [](auto& work) { work.dram_bytes *= 2; }});
  all.push_back({"as many bytes of a second kernel", moving, [](auto& work) { work.extra_dram_bytes = 4e9; }});
  all.push_back({"few SMs", moving, [](auto& work) { work.blocks = 30; }});
  all.push_back({"launches", bound_by(&BlockWork::fma, 1), [](auto& work) { work.launches *= 2; }});
  return all;
}

TEST(GridEstimate, GrowsWithWhatIsTheBottleneck) {
  for (const Worse<GridWork>& worse : worse_grids()) {
    GridWork changed = worse.work;
    worse.change(changed);
    const double before = grid_estimate(worse.work, target().arch, h200).seconds;
    const double after = grid_estimate(changed, target().arch, h200).seconds;
    EXPECT_GT(after, 1.3 * before) << worse.what;
    EXPECT_LT(after, 5 * before) << worse.what;
  }
}

// Large enough that nothing stays in the caches; alpha, beta and operands beside the usual ones; sums in parts.
const std::vector<std::string> bound_by_memory = {
    "conv_forward x=f32:64x16x56x56 w=f32:64x16x1x1 beta=any",
    "conv_forward x=f32:64x16x56x56 w=f32:64x16x1x1 epilogue=add",
    "conv_forward x=f16:64x16x56x56:nhwc w=f16:64x16x1x1:nhwc beta=1 epilogue=bias+add",
    "conv_forward x=f32:64x16x56x56 w=f32:16x16x3x3 pad=1 fast beta=any",
    "conv_forward x=f32:32x64x56x56 w=f32:64x1x3x3 groups=64 pad=1 beta=any epilogue=add",
    "conv_forward x=f32:4x512x7x7 w=f32:4096x512x3x3 pad=1",
    "conv_backward_data dy=f32:64x16x56x56 w=f32:16x64x1x1 beta=any",
    "conv_backward_filter x=f32:32x8x56x56 dy=f32:32x8x56x56 dw=f32:8x8x3x3 pad=1 beta=any",
    "conv_backward_bias dy=f32:64x64x56x56",
    "local_conv_forward x=f32:8x16x28x28 w=f32:12544x16x3x3 pad=1 beta=any",
    "local_conv_backward_data dy=f32:8x16x28x28 w=f32:12544x16x3x3 pad=1 beta=any",
    "gemm a=f32:65536x8 b=f32:8x256 beta=any epilogue=add",
    "gemm a=f32:64x65536 b=f32:65536x64",
    "pool_forward x=f32:64x64x56x56 indices=i32:64x64x28x28 window=2 stride=2",
    "pool_backward dy=f32:64x64x28x28 x=f32:64x64x56x56 window=2 stride=2 beta=any",
    "unpool_backward dy=f32:64x64x56x56 indices=i32:64x64x28x28 window=2 stride=2 beta=any",
    "softmax_forward x=f32:65536x1000 beta=any",
    "softmax_forward x=f32:64x1000000",
    "softmax_backward y=f32:65536x1000",
    "activation_forward x=f32:64x64x56x56 mode=relu beta=any",
    "tensor_op a=f32:64x64x56x56 b=f32:64x64x56x56 mode=add beta=any",
    "reduce x=f32:64x1000000 axes=1",
    "reduce x=f32:1000000x64 indices=i32:1x64 axes=0 mode=max",
    "cross_entropy_forward x=f32:65536x1000",
    "cross_entropy_backward x=f32:65536x1000",
    "norm_forward x=f32:64x1000000 beta=any epilogue=add",
    "norm_forward x=f32:64x64x56x56 axes=0,2,3 w=f32:1x64x1x1",
    "norm_affine x=f32:64x32x4x56x56:401408,4,1,7168,128 w=f32:1x32x4x1x1 axes=2,3,4",
    "norm_affine x=f32:65536x1000 w=f32:1x1000",
    "norm_backward dy=f32:64x64x56x56 w=f32:1x64x1x1 dw=f32:1x64x1x1 db=f32:1x64x1x1 axes=0,2,3 beta=any",
    "local_norm_forward x=f32:64x64x56x56 beta=any",
    "local_norm_backward x=f32:64x64x56x56 dmeans=f32:64x64x56x56 beta=any",
};

// Points of a space, evenly spread: there are thousands of some.
std::vector<Config> some_legal(const BoundAlgorithm& bound) {
  std::vector<Config> legal = bound.legal(), some;
  constexpr size_t most = 60;
  for (size_t i = 0; i < legal.size(); i += legal.size() / most + 1) some.push_back(std::move(legal[i]));
  return some;
}

// Bytes left in a workspace are written once and read at least once, through device memory where there is no L2.
TEST(Estimates, LeaveDeviceMemoryTheTimeForAllBytes) {
  DeviceFigures without_l2 = h200;
  without_l2.l2_bytes = 0;
  for (const std::string& line : bound_by_memory) {
    const Request request = Request::parse(line);
    // Regardless of its arithmetic.
    DeviceFigures counting = without_l2;
    counting.clock_hz = 1e30;
    const double operands = roofline_seconds(request, target(), counting);
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      const BoundAlgorithm bound = algorithm.on(request, target());
      for (const Config& config : some_legal(bound)) {
        const Program program = bound.program(catalogue().library(), config);
        const double workspace = 2 * static_cast<double>(program.workspace_bytes) / without_l2.dram_bytes_per_second;
        EXPECT_GE(bound.estimate(config, without_l2).seconds, operands + workspace)
            << algorithm.name() << " " << config.print() << ": " << line;
      }
    }
  }
}

// A convolution of `filters` filters of `channels` channels, 3x3.
descriptor::Contraction contraction(int filters, int channels) {
  const std::string x = "x=f32:64x" + std::to_string(channels) + "x28x28",
                    w = "w=f32:" + std::to_string(filters) + "x" + std::to_string(channels) + "x3x3";
  return descriptor::convolution(ConvForward::of(Request::parse("conv_forward " + x + " " + w + " pad=1")));
}

// 8 columns of sums a thread, in two quads that are 64 / 2 filters apart.
constexpr descriptor::SimtTiling two_quads{
    .block_m = 64, .block_n = 64, .block_k = 9, .thread_m = 4, .thread_n = 8, .stages = 1, .slices = 1};

TEST(SimtWork, TakesTheRegistersOfTheSumsThatAreStored) {
  const auto registers = [](int filters) {
    return descriptor::simt_block_work(two_quads, contraction(filters, 64), target().arch, 64).registers;
  };
  const int bound = descriptor::simt_registers(two_quads, contraction(64, 64));
  ASSERT_LE(bound, descriptor::registers_with(two_quads.warps(), target().arch));
  EXPECT_EQ(registers(64), bound);
  EXPECT_EQ(registers(33), bound) << "one filter of the second quads";
  EXPECT_EQ(registers(32), bound - 4 * 4 - 2 * 4) << "4 columns less: their sums, and rows of operands on their way";
  EXPECT_EQ(registers(1), registers(32));
}

TEST(SimtWork, TakesNoRegistersForANextChunkWhereThereIsNone) {
  const auto registers = [](int channels) {
    return descriptor::simt_block_work(two_quads, contraction(64, channels), target().arch, channels).registers;
  };
  EXPECT_EQ(registers(1), descriptor::sum_registers(two_quads)) << "9 elements of a filter are one chunk";
  EXPECT_EQ(registers(1), 4 * 8 + 24 + 28);
  EXPECT_EQ(registers(2), descriptor::simt_registers(two_quads, contraction(64, 2)));
  EXPECT_GT(registers(2), registers(1));
}

// The compiler is told how many blocks an SM should hold.
TEST(SimtWork, TakesNoMoreRegistersThanItsBlocksMayHave) {
  Arch few = target().arch;
  few.registers_per_thread = 64;
  EXPECT_EQ(descriptor::simt_block_work(two_quads, contraction(64, 64), few, 64).registers, 64);
}

// CUDA's occupancy calculator has these numbers.
TEST(Occupancy, CountsWhatBlocksHold) {
  const Arch h100 = Arch::of(9, 0);
  EXPECT_EQ(resident_blocks({.threads = 128, .registers = 32}, h100), 16);
  EXPECT_EQ(resident_blocks({.threads = 128, .registers = 33}, h100), 12) << "registers come in eights";
  EXPECT_EQ(resident_blocks({.threads = 33, .registers = 32}, h100), 32) << "two warps; no more blocks than that";
  EXPECT_EQ(resident_blocks({.threads = 256, .registers = 32, .shared_bytes = 57 * 1024}, h100), 3)
      << "the system takes a KiB of each";
  EXPECT_EQ(resident_blocks({.threads = 1024, .registers = 255}, h100), 1);
}

TEST(GridEstimate, ComparesClassesOfArithmetic) {
  GridWork work;
  work.block = {.threads = 256, .fma = 1e6, .instructions = 1e4};
  work.blocks = 1320;
  const double lanes = grid_estimate(work, Arch::of(9, 0), h200).math;
  work.block.math = MathClass::tensor_f16;
  EXPECT_DOUBLE_EQ(grid_estimate(work, Arch::of(9, 0), h200).math, lanes / 16 / 0.64) << "by mma.sync";
}

}  // namespace
}  // namespace kiln::estimate_test
