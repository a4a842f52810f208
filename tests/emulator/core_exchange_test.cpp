// Lanes that see each other, atomics, and lanes that part and meet again.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>

#include "core_lanes.h"

namespace kiln::emulator::test::core_exchange_test {
namespace {

std::vector<uint32_t> lane_values() {
  std::vector<uint32_t> values(32);
  for (uint32_t lane = 0; lane < 32; ++lane) values[lane] = lane * 2654435761u ^ lane << 20;
  return values;
}

/// The lane shfl reads, as the ISA's pseudocode has it, or -1 out of range.
int shuffle_source(const std::string& mode, int lane, int b, int c) {
  const int mask = c >> 8 & 31, clamp = c & 31, limit = (lane & mask) | (clamp & ~mask);
  const int from = mode == "up"     ? lane - b
                   : mode == "down" ? lane + b
                   : mode == "bfly" ? (lane ^ b)
                                    : ((lane & mask) | (b & ~mask));
  return (mode == "up" ? from >= limit : from <= limit) ? from : -1;
}

TEST(WarpExchange, ShufflesKeepTheirOwnValueOutOfRangeAndSaySo) {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (const int b : {0, 1, 5, 16, 31}) {
      for (const int segment : {0, 0x1800, 0x1C00}) {
        const int c = segment | (mode == "up" ? 0 : 31);
        Buffer<uint32_t> values(lane_values());
        const auto results =
            run_lanes<uint64_t>("shfl.sync." + mode + ".b32 %r1|%p1, %a, " + std::to_string(b) + ", " +
                                    std::to_string(c) + ", -1;\nselp.b32 %r2, 1, 0, %p1;\nmov.b64 %d, {%r1, %r2};",
                                values);
        for (int lane = 0; lane < 32; ++lane) {
          const int from = shuffle_source(mode, lane, b, c);
          const uint32_t value = values[static_cast<size_t>(from < 0 ? lane : from)];
          EXPECT_EQ(results[static_cast<size_t>(lane)], value | (from < 0 ? 0 : uint64_t{1} << 32))
              << mode << " b=" << b << " c=" << c << " lane " << lane;
        }
      }
    }
  }
}

/// Result of `text` in every lane, which must be the same in all of them.
template <class D>
D common_result(const std::string& text, const std::vector<uint32_t>& source) {
  Buffer<uint32_t> values(source);
  const auto results = run_lanes<D>(text, values);
  EXPECT_THAT(results, testing::Each(results[0])) << text;
  return results[0];
}

TEST(WarpExchange, VotesCountOnlyTheLanesThatAreThere) {
  const std::string odd = "and.b32 %r1, %a, 1;\nsetp.ne.u32 %p1, %r1, 0;\n", tell = "selp.b32 %d, 1, 0, %p2;";
  for (const size_t lanes : {size_t{32}, size_t{7}}) {
    std::vector<uint32_t> mixed(lanes), all(lanes, 1), none(lanes, 2);
    std::iota(mixed.begin(), mixed.end(), 0);
    const uint32_t odd_lanes = 0xAAAAAAAAu & (lanes == 32 ? ~0u : (1u << lanes) - 1);
    EXPECT_EQ(common_result<uint32_t>(odd + "vote.sync.ballot.b32 %d, %p1, -1;", mixed), odd_lanes);
    const auto outcome = [&](const std::string& mode, const std::vector<uint32_t>& source) {
      return common_result<uint32_t>(odd + "vote.sync." + mode + ".pred %p2, %p1, -1;\n" + tell, source);
    };
    EXPECT_EQ(std::tuple(outcome("all", mixed), outcome("all", all), outcome("all", none)), std::tuple(0u, 1u, 0u));
    EXPECT_EQ(std::tuple(outcome("any", mixed), outcome("any", all), outcome("any", none)), std::tuple(1u, 1u, 0u));
    EXPECT_EQ(std::tuple(outcome("uni", mixed), outcome("uni", all), outcome("uni", none)), std::tuple(0u, 1u, 1u));
  }
}

TEST(WarpExchange, ReductionsSeeTheSign) {
  const std::vector<uint32_t> v = lane_values();
  const std::vector<int32_t> s(v.begin(), v.end());
  const auto redux = [&](const std::string& op) {
    return common_result<uint32_t>("redux.sync." + op + " %d, %a, -1;", v);
  };
  EXPECT_EQ(redux("add.u32"), std::accumulate(v.begin(), v.end(), 0u));
  EXPECT_EQ(redux("max.u32"), *std::max_element(v.begin(), v.end()));
  EXPECT_EQ(redux("min.s32"), static_cast<uint32_t>(*std::min_element(s.begin(), s.end())));
  EXPECT_EQ(redux("xor.b32"), std::accumulate(v.begin(), v.end(), 0u, std::bit_xor<uint32_t>()));
  EXPECT_EQ(redux("and.b32"), std::accumulate(v.begin(), v.end(), ~0u, std::bit_and<uint32_t>()));
}

/// The bits of redux.sync on floats, all lanes taking part.
uint32_t float_redux(const std::string& op, const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), [](float x) { return std::bit_cast<uint32_t>(x); });
  return common_result<uint32_t>("redux.sync." + op + ".f32 %d, %a, -1;", bits);
}

TEST(WarpExchange, ReductionsOfFloatsFollowTheIsa) {
  const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr uint32_t canonical = 0x7FFFFFFF;
  std::vector<float> v(32, 0.5f);
  v[3] = -7.0f, v[9] = 4.0f, v[30] = nan;
  EXPECT_EQ(float_redux("min", v), bits(-7.0f)) << "without .NaN, only numbers are considered";
  EXPECT_EQ(float_redux("max", v), bits(4.0f));
  EXPECT_EQ(float_redux("max.abs", v), bits(7.0f));
  EXPECT_EQ(float_redux("min.abs", v), bits(0.5f));
  EXPECT_EQ(float_redux("min.NaN", v), canonical);
  EXPECT_EQ(float_redux("max.abs.NaN", v), canonical);
  EXPECT_EQ(float_redux("max", std::vector<float>(32, -nan)), canonical) << "no lane has a number";
  EXPECT_EQ(float_redux("max", {-nan}), canonical) << "one lane alone";
  std::vector<float> zeros(32, -0.0f);
  zeros[17] = 0.0f;
  EXPECT_EQ(float_redux("max", zeros), bits(0.0f)) << "+0.0 > -0.0";
  EXPECT_EQ(float_redux("min", zeros), bits(-0.0f));
}

TEST(WarpExchange, LanesWithMasksOfTheirOwnReduceAmongThemselves) {
  Buffer<uint32_t> values(lane_values());
  for (uint32_t lane = 0; lane < 32; ++lane) values[lane] = std::bit_cast<uint32_t>(static_cast<float>(lane));
  const auto results = run_lanes<uint32_t>(
      "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 8;\nselp.b32 %r2, 0xFF, 0xFFFFFF00, %p1;\n"
      "redux.sync.max.f32 %d, %a, %r2;",
      values);
  for (size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(std::bit_cast<float>(results[lane]), lane < 8 ? 7.0f : 31.0f);
}

TEST(WarpExchange, HalvesOfAWarpWithMasksOfTheirOwnDoNotWaitForEachOther) {
  // Lanes 0 to 15 and half of the others come together; lanes 24 to 31 come only behind a vote among themselves.
  Buffer<uint32_t> values(lane_values());
  const auto results = run_lanes<uint32_t>(
      "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 16;\nselp.b32 %r2, 0xFFFF, 0xFFFF0000, %p1;\n"
      "setp.ge.u32 %p2, %r1, 24;\n@%p2 bra late;\nmeet:\nvote.sync.ballot.b32 %r3, 1, %r2;\n"
      "and.b32 %r4, %r1, 1;\nsetp.eq.u32 %p3, %r4, 0;\nvote.sync.all.pred %p4, !%p1, %r2;\n"
      "selp.b32 %r5, 1, 0, %p4;\nadd.u32 %d, %r3, %r5;\nbra done;\n"
      "late:\nvote.sync.ballot.b32 %r6, %p2, 0xFF000000;\nbra meet;\ndone:",
      values);
  for (size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(results[lane], lane < 16 ? 0xFFFFu : 0xFFFF0001u) << lane;
}

TEST(WarpExchange, AHalfThatIsWholeGoesOnWhileTheOtherWaitsForABarrierBehindIt) {
  // Lanes 16 to 31 are not whole before lane 31 comes, and that waits at a barrier for lanes 0 to 15.
  Buffer<uint32_t> values(lane_values());
  const auto results = run_lanes<uint32_t>(
      "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 16;\nselp.b32 %r2, 0xFFFF, 0xFFFF0000, %p1;\n"
      "setp.ne.u32 %p2, %r1, 31;\n@%p2 bra meet;\nbar.warp.sync 0x8000FFFF;\nmeet:\n"
      "vote.sync.ballot.b32 %d, 1, %r2;\nsetp.ge.u32 %p3, %r1, 16;\n@%p3 bra done;\nbar.warp.sync 0x8000FFFF;\ndone:",
      values);
  for (size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(results[lane], lane < 16 ? 0xFFFFu : 0xFFFF0000u) << lane;
}

TEST(WarpExchange, AShuffleFromALaneThatTakesNoPartGivesNoUsableValue) {
  // "the results are unpredictable": checks make it all ones.
  Buffer<uint32_t> values(lane_values());
  const auto results = run_lanes<uint32_t>(
      "mov.u32 %d, 7;\nmov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 20;\n@%p1 bra done;\n"
      "shfl.sync.down.b32 %d, %a, 16, 31, 0xFFFFF;\ndone:",
      values);
  for (size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(results[lane], lane >= 20                   ? 7u
                             : lane < 4 || lane + 16 > 31 ? values[lane + 16 > 31 ? lane : lane + 16]
                                                          : ~0u)
        << lane;
  }
}

TEST(WarpExchange, ResultsThatNobodyWantsDisturbNothing) {
  // A predicate "_" that would be false for the whole warp; every later instruction must still run.
  for (const char* text : {"setp.ne.u32 %p1, %r0, %r0;\nbar.red.and.pred _, 0, %p1;",
                           "setp.ne.u32 %p1, %r0, %r0;\nbar.red.or.pred _, 0, %p1;", "isspacep.shared _, %rd1;",
                           "setp.ne.u32 _, %r0, %r0;", "vote.sync.any.pred _, %p1, -1;"}) {
    Buffer<uint32_t> values(lane_values());
    EXPECT_EQ(run_lanes<uint32_t>(std::string("mov.pred %p1, 0;\n") + text + "\nadd.u32 %d, %a, 1;", values)[5],
              values[5] + 1)
        << text;
  }
}

/// One word after 64 blocks of 32 threads have applied `text` to [%rd0] with %r0 the thread.
template <class T>
T after_atomics(const std::string& text, T start) {
  Buffer<T> word(1, start);
  Module module(ptx_kernel("mov.u32 %r0, %tid.x;\nld.param.u64 %rd0, [p0];\n" + text));
  module.allow(word);
  const Arguments arguments(word.address(), uint64_t{0}, uint64_t{0}, uint64_t{0});
  LaunchRequest request = module.request("k", {64}, {32}, arguments);
  request.host_threads = 2;
  const LaunchOutcome outcome = run(request);
  EXPECT_FALSE(outcome.fault) << outcome.fault->report;
  return word[0];
}

TEST(Atomics, NothingIsLostBetweenLanesAndBlocks) {
  EXPECT_EQ(after_atomics<uint32_t>("atom.global.add.u32 %r1, [%rd0], %r0;", 5), 5u + 64 * 496);
  EXPECT_EQ(after_atomics<uint64_t>("cvt.u64.u32 %rd1, %r0;\nred.global.add.u64 [%rd0], %rd1;", 5), 5u + 64 * 496);
  EXPECT_EQ(after_atomics<float>("cvt.rn.f32.u32 %f1, %r0;\nred.global.add.f32 [%rd0], %f1;", 0.5f), 31744.5f);
  EXPECT_EQ(after_atomics<int32_t>("neg.s32 %r0, %r0;\natom.global.min.s32 %r1, [%rd0], %r0;", 9), -31);
  EXPECT_EQ(after_atomics<uint32_t>("atom.global.max.u32 %r1, [%rd0], %r0;", 9), 31u);
  EXPECT_EQ(after_atomics<uint32_t>("shl.b32 %r2, 1, %r0;\nred.global.or.b32 [%rd0], %r2;", 0), ~0u);
  EXPECT_EQ(after_atomics<uint32_t>("atom.global.inc.u32 %r1, [%rd0], 6;", 0), 64u * 32 % 7);
}

TEST(Atomics, AddFloatsOfGlobalMemoryWithoutSubnormals) {
  // "atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero; whereas atom.add.f32
  // on shared memory supports subnormal inputs and results".
  const std::string once = "mov.u32 %r1, %ctaid.x;\nor.b32 %r1, %r1, %r0;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra done;\n";
  const float small = 0x1p-130f, normal = 0x1p-126f;
  const std::string add_small = "atom.global.add.f32 %f1, [%rd0], 0f00080000;\n";  // 0x1p-130
  EXPECT_EQ(after_atomics<float>(once + add_small + "done:", small), 0.0f);
  EXPECT_EQ(after_atomics<float>(once + add_small + "done:", normal), normal);
  EXPECT_EQ(after_atomics<float>(once + "red.global.add.f32 [%rd0], 0f80C00000;\ndone:", normal), 0.0f)
      << "the sum is subnormal";
  for (const char* space : {"shared.", ""}) {
    const std::string body =
        once + ".shared .align 4 .b8 word[4];\nmov.u64 %rd1, word;\n" +
        (*space != 0 ? "" : "cvta.shared.u64 %rd1, %rd1;\n") + "st.shared.b32 [word], 0x00080000;\n" + "atom." + space +
        "add.f32 %f1, [%rd1], 0f00080000;\nld.shared.b32 %r2, [word];\n" + "st.global.b32 [%rd0], %r2;\ndone:";
    EXPECT_EQ(after_atomics<float>(body, 1.0f), 2 * small) << space;
  }
}

TEST(Atomics, CompareAndSwapLoopsFinish) {
  // From a guess that is wrong: a plain load of the word would race with the other blocks' atomics.
  const std::string loop =
      "mov.u32 %r1, 0;\nretry:\nmov.u32 %r2, %r1;\nadd.u32 %r3, %r2, 3;\n"
      "atom.global.cas.b32 %r1, [%rd0], %r2, %r3;\nsetp.ne.u32 %p1, %r1, %r2;\n@%p1 bra retry;";
  EXPECT_EQ(after_atomics<uint32_t>(loop, 1), 1u + 3 * 64 * 32);
}

TEST(Fences, LetTheLastBlockSeeWhatAllOthersWrote) {
  constexpr uint32_t blocks = 64, count = blocks * 32;
  Buffer<uint32_t> words(2), data(count);  // words: blocks that have finished, the sum
  Module module(ptx_kernel(
      "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\n"
      "mad.lo.u32 %r2, %r1, 32, %r0;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd2, %rd1, %rd2;\n"
      "st.global.u32 [%rd2], %r2;\nmembar.gl;\nbar.sync 0;\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra done;\n"
      "atom.global.add.u32 %r3, [%rd0], 1;\nsetp.ne.u32 %p1, %r3, 63;\n@%p1 bra done;\nmembar.gl;\n"
      "mov.u32 %r4, 0;\nmov.u32 %r5, 0;\nsum:\nmul.wide.u32 %rd3, %r4, 4;\nadd.u64 %rd3, %rd1, %rd3;\n"
      "ld.global.u32 %r6, [%rd3];\nadd.u32 %r5, %r5, %r6;\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, 2048;\n"
      "@%p2 bra sum;\nst.global.u32 [%rd0+4], %r5;\ndone:"));
  module.allow(words).allow(data);
  const Arguments arguments(words.address(), data.address(), uint64_t{0}, uint64_t{0});
  LaunchRequest request = module.request("k", {blocks}, {32}, arguments);
  request.host_threads = 4;
  const LaunchOutcome outcome = run(request);
  ASSERT_FALSE(outcome.fault) << outcome.fault->report;
  EXPECT_EQ(words[1], count * (count - 1) / 2);
}

TEST(Divergence, NestedBranchesMeetAgain) {
  const std::string text =
      "mov.u32 %r1, 0;\nsetp.lt.u32 %p1, %a, 10;\n@%p1 bra small;\nand.b32 %r2, %a, 1;\nsetp.eq.u32 %p2, %r2, 0;\n"
      "@%p2 bra even;\nadd.u32 %r1, %r1, 100;\nbra inner;\neven:\nadd.u32 %r1, %r1, 200;\ninner:\n"
      "add.u32 %r1, %r1, 1;\nbra meet;\nsmall:\nmul.lo.u32 %r1, %a, 7;\nmeet:\nadd.u32 %d, %r1, 1000;";
  expect_lanes(
      text, [](uint32_t a) { return 1000 + (a < 10       ? a * 7
                                            : a % 2 == 0 ? 201
                                                         : 101); }, awkward_u32);
}

TEST(Divergence, EachLaneRunsItsOwnNumberOfTrips) {
  std::vector<uint32_t> trips(64);
  for (uint32_t k = 0; k < 64; ++k) trips[k] = k * 37 % 29;
  const std::string text =
      "mov.u32 %r1, 0;\nmov.u32 %d, 0;\nloop:\nsetp.ge.u32 %p1, %r1, %a;\n@%p1 bra done;\nadd.u32 %r1, %r1, 1;\n"
      "mad.lo.u32 %d, %r1, %r1, %d;\nbra loop;\ndone:";
  expect_lanes(
      text, [](uint32_t n) { return n * (n + 1) * (2 * n + 1) / 6; }, trips);
}

TEST(Divergence, LanesThatHaveLeftDoNotHoldUpTheOthers) {
  std::vector<uint32_t> lanes(32);
  std::iota(lanes.begin(), lanes.end(), 0);
  Buffer<uint32_t> values(lanes);
  const auto results = run_lanes<uint32_t>(
      "setp.ge.u32 %p1, %a, 20;\n@%p1 ret;\nbar.sync 0;\nsetp.lt.u32 %p2, %a, 3;\nvote.sync.ballot.b32 %d, %p2, "
      "0xFFFFF;",
      values);
  for (size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(results[lane], lane < 20 ? 7u : 0u) << lane;
}

}  // namespace
}  // namespace kiln::emulator::test::core_exchange_test
