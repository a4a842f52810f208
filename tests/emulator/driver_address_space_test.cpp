#include <gtest/gtest.h>

#include <cstring>

#include "memory/address_space.h"
#include "memory/region_table.h"

namespace kiln::emulator::driver_address_space_test {
namespace {

TEST(AddressSpace, GuardsItsAllocationsInHardware) {
  AddressSpace memory(1 << 20, "allocation");
  const auto address = memory.allocate(4096);
  ASSERT_TRUE(address.has_value());
  auto* bytes = reinterpret_cast<volatile char*>(*address);
  bytes[4095] = 1;
  EXPECT_DEATH(bytes[4096] = 1, "");
  EXPECT_DEATH(bytes[-1] = 1, "");
  EXPECT_TRUE(memory.free(*address));
  EXPECT_DEATH(bytes[0] = 1, "");
}

TEST(AddressSpace, KnowsItsRangesToTheByte) {
  AddressSpace memory(1000, "allocation");
  const uint64_t address = memory.allocate(100).value();
  EXPECT_TRUE(memory.contains(address, 100));
  EXPECT_TRUE(memory.contains(address + 99, 1));
  EXPECT_FALSE(memory.contains(address + 99, 2));
  EXPECT_FALSE(memory.contains(address + 100, 0)) << "one past the end is not inside";
  EXPECT_FALSE(memory.contains(address - 1, 2));
  EXPECT_FALSE(memory.contains(address, UINT64_MAX));
  EXPECT_EQ(memory.free_bytes(), 900u);
  EXPECT_FALSE(memory.allocate(901).has_value());
  EXPECT_TRUE(memory.free(address));
  EXPECT_FALSE(memory.free(address));
  EXPECT_EQ(memory.free_bytes(), 1000u);
}

TEST(AddressSpace, HoldsForeignRangesThatDoNotOverlap) {
  AddressSpace memory(1000, "allocation");
  EXPECT_TRUE(memory.add(1000, 100, "a"));
  EXPECT_FALSE(memory.add(1099, 1, "b"));
  EXPECT_FALSE(memory.add(999, 2, "b"));
  EXPECT_FALSE(memory.add(900, 300, "b"));
  EXPECT_TRUE(memory.add(1100, 1, "b"));
  EXPECT_TRUE(memory.add(999, 1, "c"));
  EXPECT_FALSE(memory.free(1000)) << "not allocated here";
  EXPECT_TRUE(memory.remove(1000));
  EXPECT_FALSE(memory.remove(1000));
  EXPECT_FALSE(memory.contains(1000, 1));
  EXPECT_EQ(memory.free_bytes(), 1000u);
}

TEST(AddressSpace, TakesMarksOffWhenLaunchesAreNumberedFromTheBeginning) {
  AddressSpace memory(1 << 20, "allocation", AddressSpace::Fresh::unwritten);
  memory.allocate(4096);
  std::vector<Region> valid, freed;
  memory.list(valid, freed);
  memory.mark_written(valid[0].begin, 4096);
  valid[0].marks[4095].read = 5;
  for (uint32_t number = 1; number <= most_launches; ++number) EXPECT_EQ(memory.next_launch(), number);
  EXPECT_EQ(valid[0].marks[4095].read, 5u);
  EXPECT_EQ(memory.next_launch(), 1u);
  EXPECT_EQ(valid[0].marks[4095].read, 0u);
  EXPECT_EQ(valid[0].written[4095], 1) << "only the marks go";
}

TEST(AddressSpace, ChangesItsVersionWithItsRanges) {
  AddressSpace memory(1000, "allocation");
  const uint64_t first = memory.version();
  const uint64_t address = memory.allocate(10).value();
  const uint64_t second = memory.version();
  EXPECT_NE(first, second);
  memory.free(address);
  EXPECT_NE(second, memory.version());
}

class RegionTableTest : public ::testing::Test {
 protected:
  const uint64_t base_ = 0x10000000;
  const RegionTable table_{{{base_ + 300, base_ + 400, "b"}, {base_ + 100, base_ + 200, "a"}},
                           {{base_ + 500, base_ + 600, "c"}}};
};

TEST_F(RegionTableTest, FindsTheRegionThatHoldsAnAddress) {
  ASSERT_NE(table_.find(base_ + 100), nullptr);
  EXPECT_EQ(table_.find(base_ + 100)->name, "a");
  EXPECT_EQ(table_.find(base_ + 199)->name, "a");
  EXPECT_EQ(table_.find(base_ + 200), nullptr);
  EXPECT_EQ(table_.find(base_ + 300)->name, "b");
  EXPECT_EQ(table_.find(base_ + 550), nullptr) << "freed";
  EXPECT_EQ(table_.find(0), nullptr);
  EXPECT_EQ(RegionTable().find(base_), nullptr);
}

TEST_F(RegionTableTest, FindsTheNearestRegion) {
  EXPECT_EQ(table_.nearest(0)->name, "a");
  EXPECT_EQ(table_.nearest(base_ + 210)->name, "a");
  EXPECT_EQ(table_.nearest(base_ + 290)->name, "b");
  EXPECT_EQ(table_.nearest(UINT64_MAX)->name, "b");
  EXPECT_EQ(RegionTable().nearest(base_), nullptr);
}

TEST_F(RegionTableTest, SaysWhereAnAddressLies) {
  EXPECT_EQ(table_.describe(base_ + 104), "4 bytes into a");
  EXPECT_EQ(table_.describe(base_ + 200), "0 bytes past the end of a");
  EXPECT_EQ(table_.describe(base_ + 201), "1 byte past the end of a");
  EXPECT_EQ(table_.describe(base_ + 296), "4 bytes before b");
  EXPECT_EQ(table_.describe(base_ + 504), "4 bytes into c, which was freed");
  EXPECT_EQ(table_.describe(0), "null");
  EXPECT_EQ(table_.describe(16), "16 bytes past null");
  EXPECT_EQ(table_.describe(base_ << 20), "no allocation is near");
  EXPECT_EQ(RegionTable().describe(base_), "no allocation is near");
}

}  // namespace
}  // namespace kiln::emulator::driver_address_space_test
