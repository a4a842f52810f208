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

void sort_by_address(std::vector<Region>& regions) {
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
}

// The last region that begins at or below `address`, or null.
const Region* last_at_or_below(const std::vector<Region>& regions, uint64_t address) {
  auto above = std::upper_bound(regions.begin(), regions.end(), address,
                                [](uint64_t value, const Region& region) { return value < region.begin; });
  return above == regions.begin() ? nullptr : &*std::prev(above);
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

}  // namespace

RegionTable::RegionTable(std::vector<Region> regions, std::vector<Region> freed)
    : regions_(std::move(regions)), freed_(std::move(freed)) {
  sort_by_address(regions_);
  sort_by_address(freed_);
}

const Region* RegionTable::find(uint64_t address) const {
  return holder(regions_, address);
}

const Region* RegionTable::nearest(uint64_t address) const {
  if (regions_.empty()) return nullptr;
  const Region* below = last_at_or_below(regions_, address);
  if (below == nullptr) return &regions_.front();
  const Region* above = below + 1;
  if (above == regions_.data() + regions_.size()) return below;
  return distance(*above, address) < distance(*below, address) ? above : below;
}

std::string RegionTable::describe(uint64_t address) const {
  if (address < null_page_bytes) return address == 0 ? "null" : fmt::format("{} past null", bytes(address));
  if (const Region* region = find(address)) {
    return fmt::format("{} into {}", bytes(address - region->begin), region->name);
  }
  if (const Region* region = holder(freed_, address)) {
    return fmt::format("{} into {}, which was freed", bytes(address - region->begin), region->name);
  }
  const Region* region = nearest(address);
  if (region == nullptr || distance(*region, address) > near_bytes) return "no allocation is near";
  if (address < region->begin) return fmt::format("{} before {}", bytes(region->begin - address), region->name);
  return fmt::format("{} past the end of {}", bytes(address - region->end), region->name);
}

}  // namespace kiln::emulator
