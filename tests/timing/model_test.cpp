#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/timing/time_model.h"
#include "support.h"

namespace kiln::timing {
namespace {

Occupancy occupancy_of(uint32_t threads, int registers, uint32_t shared) {
  KernelFacts facts = plain_facts();
  facts.registers = registers;
  facts.shared_bytes = shared;
  Launch launch;
  launch.block = {threads, 1, 1};
  return occupancy(facts, launch, find_card("a100"));
}

// By NVIDIA's occupancy calculator for 8.0.
TEST(Occupancy, TakesTheScarcest) {
  EXPECT_EQ(occupancy_of(32, 16, 0).blocks, 32U);
  EXPECT_EQ(occupancy_of(32, 16, 0).limit, "blocks");
  EXPECT_EQ(occupancy_of(256, 32, 0).blocks, 8U);
  EXPECT_EQ(occupancy_of(256, 32, 0).limit, "warps");
  EXPECT_EQ(occupancy_of(256, 128, 0).blocks, 2U);
  EXPECT_EQ(occupancy_of(256, 128, 0).limit, "registers");
  EXPECT_EQ(occupancy_of(128, 16, 48 * 1024).blocks, 3U);
  EXPECT_EQ(occupancy_of(128, 16, 48 * 1024).limit, "shared memory");
  EXPECT_THROW(occupancy_of(1024, 255, 0), Error);
}

Sass loads() {
  return Code()
      .add("S2R R0, SR_TID.X", sets(0))
      .add("S2R R1, SR_CTAID.X", sets(0))
      .add("IMAD R0, R1, 0x100, R0", waits(1, 5))
      .add("IMAD.WIDE.U32 R2, R0, 0x4, RZ", stall(5))
      .add("LDG.E R4, [R2.64]", sets(0))
      .add("FADD R5, R4, R4", waits(1, 4))
      .add("EXIT", stall(1))
      .sass();
}

// Every block reads 1 KB of its own: as many waves as there are, DRAM bounds it.
TEST(Model, AStreamTakesWhatDramGives) {
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {1 << 20, 1, 1};
  const ModelledTime time = model_time(loads(), plain_facts(), launch, find_card("a100"));
  EXPECT_EQ(time.dram_share, 1);
  EXPECT_NEAR(time.seconds, 1024.0 * (1 << 20) / 1.4e12, 0.05 * time.seconds);
  EXPECT_THAT(time.bound, testing::HasSubstr("DRAM"));
}

TEST(Model, AWaveMoreTakesMoreTime) {
  Launch launch;
  launch.block = {256, 1, 1};
  const auto seconds = [&](uint32_t blocks) {
    launch.grid = {blocks, 1, 1};
    return model_time(loads(), plain_facts(), launch, find_card("a100")).seconds;
  };
  EXPECT_EQ(seconds(108), seconds(50));
  EXPECT_GT(seconds(108 * 8 + 1), seconds(108 * 8));
}

// Blocks that read the same find it in L2.
TEST(Model, NeighboursShareL2) {
  const Sass sass =
      Code().add("LDG.E R4, [RZ]", sets(0)).add("FADD R5, R4, R4", waits(1, 4)).add("EXIT", stall(1)).sass();
  Launch launch;
  launch.block = {256, 1, 1};
  launch.grid = {4000, 1, 1};
  EXPECT_EQ(model_time(sass, plain_facts(), launch, find_card("a100")).dram_share, 0);
}

}  // namespace
}  // namespace kiln::timing
