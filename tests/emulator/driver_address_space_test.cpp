#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

TEST(AddressSpace, HoldsGroupsOfRanges) {
  AddressSpace memory(1000, "allocation");
  constexpr uint64_t base = 1 << 20;
  const auto group = std::make_shared<const std::vector<Region>>(
      std::vector<Region>{{base, base + 100, "a"}, {base + 200, base + 300, "b"}});
  EXPECT_TRUE(memory.add(group));
  EXPECT_FALSE(memory.add(group));
  EXPECT_FALSE(memory.add(base + 150, 10, "c")) << "between them";
  EXPECT_FALSE(memory.add(base + 299, 10, "c"));
  EXPECT_TRUE(memory.add(base + 300, 10, "c"));
  EXPECT_TRUE(memory.contains(base, 100));
  EXPECT_TRUE(memory.contains(base + 250, 50));
  EXPECT_FALSE(memory.contains(base + 250, 51));
  EXPECT_FALSE(memory.contains(base + 99, 2));
  EXPECT_FALSE(memory.contains(base + 150, 1));
  EXPECT_EQ(memory.find(base + 299)->begin, base + 200);
  EXPECT_EQ(memory.find(base + 299)->bytes, 100U);
  EXPECT_EQ(memory.describe(base + 210), "10 bytes into b");
  EXPECT_FALSE(memory.free(base)) << "not allocated here";
  EXPECT_FALSE(memory.remove(base + 200));
  const uint64_t version = memory.version();
  EXPECT_TRUE(memory.remove(base));
  EXPECT_NE(memory.version(), version);
  EXPECT_FALSE(memory.contains(base + 250, 1));
}

TEST(AddressSpace, TakesMarksOffWhenLaunchesAreNumberedFromTheBeginning) {
  AddressSpace memory(1 << 20, "allocation", AddressSpace::Fresh::unwritten);
  memory.allocate(4096);
  RegionTable::Contents contents;
  memory.list(contents);
  const std::vector<Region>& valid = contents.regions;
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
  static RegionGroup group(std::vector<Region> regions) {
    return std::make_shared<const std::vector<Region>>(std::move(regions));
  }
  const RegionTable table_{{.regions = {{base_ + 300, base_ + 400, "b"}, {base_ + 100, base_ + 200, "a"}},
                            .freed = {{base_ + 500, base_ + 600, "c"}}}};
  const RegionTable grouped_{{.regions = {{base_ + 100, base_ + 200, "a"}},
                              .groups = {group({{base_ + 900, base_ + 901, "f"}}),
                                         group({{base_ + 300, base_ + 400, "d"}, {base_ + 500, base_ + 600, "e"}})}}};
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
  for (const auto& [offset, name] : std::map<uint64_t, std::string>{
           {100, "a"}, {199, "a"}, {300, "d"}, {399, "d"}, {500, "e"}, {599, "e"}, {900, "f"}}) {
    ASSERT_NE(grouped_.find(base_ + offset), nullptr) << offset;
    EXPECT_EQ(grouped_.find(base_ + offset)->name, name);
  }
  for (const uint64_t offset : {99, 200, 299, 400, 499, 600, 899, 901}) {
    EXPECT_EQ(grouped_.find(base_ + offset), nullptr) << offset;
  }
}

TEST_F(RegionTableTest, FindsTheNearestRegion) {
  EXPECT_EQ(table_.nearest(0)->name, "a");
  EXPECT_EQ(table_.nearest(base_ + 210)->name, "a");
  EXPECT_EQ(table_.nearest(base_ + 290)->name, "b");
  EXPECT_EQ(table_.nearest(UINT64_MAX)->name, "b");
  EXPECT_EQ(RegionTable().nearest(base_), nullptr);
  for (const auto& [offset, name] : std::map<uint64_t, std::string>{
           {0, "a"}, {240, "a"}, {260, "d"}, {440, "d"}, {460, "e"}, {700, "e"}, {760, "f"}, {5000, "f"}}) {
    EXPECT_EQ(grouped_.nearest(base_ + offset)->name, name) << offset;
  }
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
