#include <gtest/gtest.h>

#include "driver/timeline.h"

namespace kiln::emulator::driver_timeline_test {
namespace {

constexpr Share third = whole_engine / 3;

TEST(Timeline, PutsWorkOfOneStreamInARow) {
  Timeline timeline;
  Track track;
  EXPECT_EQ(timeline.enqueue(track, HardwareEngine::compute, 10, third), 10u);
  EXPECT_EQ(timeline.enqueue(track, HardwareEngine::copy_to_host, 5), 15u);
  EXPECT_EQ(timeline.enqueue(track, HardwareEngine::compute, 10), 25u);
  EXPECT_EQ(timeline.record(track), 25u);
  EXPECT_EQ(timeline.horizon(), 25u);
}

TEST(Timeline, LetsKernelsOverlapWhileTheirSharesFit) {
  Timeline timeline;
  Track a, b, c, d;
  EXPECT_EQ(timeline.enqueue(a, HardwareEngine::compute, 10, third), 10u);
  EXPECT_EQ(timeline.enqueue(b, HardwareEngine::compute, 20, third), 20u);
  EXPECT_EQ(timeline.enqueue(c, HardwareEngine::compute, 30, third), 30u);
  EXPECT_EQ(timeline.enqueue(d, HardwareEngine::compute, 5, third), 15u) << "after a";
}

TEST(Timeline, LooksAheadBeforeItFillsAGap) {
  Timeline timeline;
  Track a, b, c;
  EXPECT_EQ(timeline.enqueue(a, HardwareEngine::compute, 10), 10u);
  timeline.wait(b, 15);
  EXPECT_EQ(timeline.enqueue(b, HardwareEngine::compute, 10), 25u);
  EXPECT_EQ(timeline.enqueue(c, HardwareEngine::compute, 6), 31u) << "the gap from 10 to 15 is too short";
  Track d;
  EXPECT_EQ(timeline.enqueue(d, HardwareEngine::compute, 5), 15u) << "just fits";
}

TEST(Timeline, KeepsEnginesApart) {
  Timeline timeline;
  Track a, b, c;
  EXPECT_EQ(timeline.enqueue(a, HardwareEngine::compute, 10), 10u);
  EXPECT_EQ(timeline.enqueue(b, HardwareEngine::copy_to_device, 10), 10u);
  EXPECT_EQ(timeline.enqueue(c, HardwareEngine::copy_to_host, 10), 10u);
}

TEST(Timeline, ForgetsOldWorkButNeverRunsBeforeIt) {
  Timeline timeline;
  Track busy;
  for (int i = 0; i < 1000; ++i) timeline.enqueue(busy, HardwareEngine::compute, 10);
  EXPECT_EQ(busy.ready, 10000u);
  Track late;
  EXPECT_EQ(timeline.enqueue(late, HardwareEngine::compute, 1), 10001u);
}

TEST(Timeline, KeepsPicosecondsWhole) {
  EXPECT_EQ(to_picoseconds(2e-6), 2'000'000u);
  EXPECT_EQ(to_picoseconds(0), 0u);
  EXPECT_EQ(to_picoseconds(1.5e-12), 2u);
}

}  // namespace
}  // namespace kiln::emulator::driver_timeline_test
