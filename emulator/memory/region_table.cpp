#include "memory/region_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kiln::emulator {
namespace {

// Farther than this from any allocation, naming the nearest one would mislead more than it helps.
constexpr uint64_t near_bytes = uint64_t{1} << 32;

// Addresses below this are an offset from a null pointer, as on hardware, where the first page is never mapped.
constexpr uint64_t null_page_bytes = 65536;

uint64_t begin_of(const Region& region) {
  return region.begin;
}

uint64_t begin_of(const RegionGroup& group) {
  return group->front().begin;
}

template <class Part>
void sort_by_address(std::vector<Part>& parts) {
  std::ranges::sort(parts, {}, [](const Part& part) { return begin_of(part); });
}

// The last part that begins at or below `address`, or null.
template <class Part>
const Part* last_at_or_below(const std::vector<Part>& parts, uint64_t address) {
  const auto above = std::ranges::upper_bound(parts, address, {}, [](const Part& part) { return begin_of(part); });
  return above == parts.begin() ? nullptr : &*std::prev(above);
}

const Region* holder(const std::vector<Region>& regions, uint64_t address) {
  const Region* region = last_at_or_below(regions, address);
  return region != nullptr && address < region->end ? region : nullptr;
}

// Bytes between `address` and the region; 0 inside.
uint64_t distance(const Region& region, uint64_t address) {
  if (address < region.begin) return region.begin - address;
  return address < region.end ? 0 : address - region.end + 1;
}

std::string bytes(uint64_t count) {
  return count == 1 ? "1 byte" : fmt::format("{} bytes", count);
}

// The nearer of the two around `address`; null where there are none.
const Region* nearest_of(const std::vector<Region>& regions, uint64_t address) {
  if (regions.empty()) return nullptr;
  const Region* below = last_at_or_below(regions, address);
  if (below == nullptr) return &regions.front();
  const Region* above = below + 1;
  if (above == regions.data() + regions.size()) return below;
  return distance(*above, address) < distance(*below, address) ? above : below;
}

}  // namespace

RegionTable::RegionTable(Contents contents) : contents_(std::move(contents)) {
  sort_by_address(contents_.regions);
  sort_by_address(contents_.groups);
  sort_by_address(contents_.freed);
}

const Region* RegionTable::find(uint64_t address) const {
  if (const Region* region = holder(contents_.regions, address)) return region;
  const RegionGroup* group = last_at_or_below(contents_.groups, address);
  return group == nullptr ? nullptr : holder(**group, address);
}

const Region* RegionTable::nearest(uint64_t address) const {
  const Region* nearest = nearest_of(contents_.regions, address);
  const auto look = [&](const RegionGroup& group) {
    const Region* region = nearest_of(*group, address);
    if (nearest == nullptr || distance(*region, address) < distance(*nearest, address)) nearest = region;
  };
  const std::vector<RegionGroup>& groups = contents_.groups;
  if (groups.empty()) return nearest;
  const RegionGroup* below = last_at_or_below(groups, address);
  if (below != nullptr) look(*below);
  const RegionGroup* above = below == nullptr ? groups.data() : below + 1;
  if (above != groups.data() + groups.size()) look(*above);
  return nearest;
}

std::string RegionTable::describe(uint64_t address) const {
  if (address < null_page_bytes) return address == 0 ? "null" : fmt::format("{} past null", bytes(address));
  if (const Region* region = find(address)) {
    return fmt::format("{} into {}", bytes(address - region->begin), region->name);
  }
  if (const Region* region = holder(contents_.freed, address)) {
    return fmt::format("{} into {}, which was freed", bytes(address - region->begin), region->name);
  }
  const Region* region = nearest(address);
  if (region == nullptr || distance(*region, address) > near_bytes) return "no allocation is near";
  if (address < region->begin) return fmt::format("{} before {}", bytes(region->begin - address), region->name);
  return fmt::format("{} past the end of {}", bytes(address - region->end), region->name);
}

}  // namespace kiln::emulator
