#include "checks/memory_recorder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <unordered_map>

namespace kiln::emulator {
namespace {

constexpr uint64_t sector_bytes = 32;
constexpr uint32_t banks = 32, bank_bytes = 4;
constexpr size_t first_capacity = 1024;

size_t hashed(uint64_t sector) {
  return static_cast<size_t>(sector * 0x9E3779B97F4A7C15u >> 17);
}

/// Passes that the shared memory needs for these words: the most distinct words in one bank.
uint32_t passes(const uint64_t* words, size_t count) {
  std::array<std::array<uint64_t, warp_lanes * 4>, banks> seen;
  std::array<uint32_t, banks> distinct{};
  uint32_t most = 0;
  for (size_t k = 0; k < count; ++k) {
    const size_t bank = words[k] % banks;
    auto* const end = seen[bank].data() + distinct[bank];
    if (std::find(seen[bank].data(), end, words[k]) != end) continue;
    *end = words[k];
    most = std::max(most, ++distinct[bank]);
  }
  return most;
}

}  // namespace

SectorSet::SectorSet() : entries_(first_capacity) {}

bool SectorSet::touch(uint64_t sector, uint32_t stamp) {
  const size_t mask = entries_.size() - 1;
  size_t at = hashed(sector) & mask;
  while (entries_[at].blocks != 0 && entries_[at].sector != sector) at = (at + 1) & mask;
  Entry& entry = entries_[at];
  if (entry.blocks != 0 && entry.stamp == stamp) return false;
  const bool added = entry.blocks == 0;
  entry.sector = sector;
  entry.stamp = stamp;
  ++entry.blocks;
  if (added && ++used_ * 2 > entries_.size()) grow();
  return true;
}

void SectorSet::grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  const size_t mask = entries_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.blocks == 0) continue;
    size_t at = hashed(entry.sector) & mask;
    while (entries_[at].blocks != 0) at = (at + 1) & mask;
    entries_[at] = entry;
  }
}

void MemoryRecorder::global(const AccessRequest& request) {
  std::array<uint64_t, warp_lanes * 2> sectors;
  size_t count = 0;
  uint64_t highest = 0;
  const auto add = [&](uint64_t sector) {
    // Lanes mostly go upwards, so that most sectors are either the last one or above all others.
    if (count != 0 && sector == sectors[count - 1]) return;
    const auto end = sectors.begin() + static_cast<ptrdiff_t>(count);
    if (count != 0 && sector <= highest && std::find(sectors.begin(), end, sector) != end) return;
    sectors[count++] = sector;
    highest = std::max(highest, sector);
  };
  for (Mask rest = request.lanes; rest != 0; rest &= rest - 1) {
    const uint64_t address = request.address[static_cast<size_t>(std::countr_zero(rest))];
    const uint64_t last = (address + request.bytes - 1) / sector_bytes;
    for (uint64_t sector = address / sector_bytes; sector <= last; ++sector) add(sector);
  }
  global_sectors_ += count;
  for (size_t k = 0; k < count; ++k) {
    if (request.kind != AccessKind::store) block_sectors_ += loaded_.touch(sectors[k], stamp_) ? 1 : 0;
    if (request.kind != AccessKind::load) block_sectors_ += stored_.touch(sectors[k], stamp_) ? 1 : 0;
  }
}

void MemoryRecorder::shared(const AccessRequest& request, uint64_t base) {
  // 64-bit accesses go by half warps, 128-bit ones by quarters.
  const uint32_t words_each = std::max(1u, request.bytes / bank_bytes);
  const uint32_t lanes_at_once = warp_lanes / std::min(words_each, 4u);
  std::array<uint64_t, warp_lanes * 4> words;
  uint64_t& wavefronts = request.space == ptx::Space::generic ? generic_wavefronts_ : shared_wavefronts_;
  for (uint32_t first = 0; first < warp_lanes; first += lanes_at_once) {
    uint64_t lowest = UINT64_MAX, highest = 0;
    size_t count = 0;
    for (uint32_t lane = first; lane < first + lanes_at_once; ++lane) {
      if ((request.lanes >> lane & 1) == 0) continue;
      const uint64_t word = (request.address[lane] - base) / bank_bytes;
      lowest = std::min(lowest, word);
      highest = std::max(highest, word + words_each - 1);
      for (uint32_t w = 0; w < words_each; ++w) words[count++] = word + w;
    }
    if (count == 0) continue;
    // Words that are less than a row of banks apart never meet in a bank.
    wavefronts += highest - lowest < banks ? 1 : passes(words.data(), count);
  }
}

const Region* RegionFinder::find(uint64_t address) const {
  if (memory_ != nullptr) {
    if (const Region* const region = memory_->find(address)) return region;
  }
  const auto after = std::upper_bound(variables_.begin(), variables_.end(), address,
                                      [](uint64_t a, const Region& region) { return a < region.begin; });
  if (after == variables_.begin() || address >= (after - 1)->end) return nullptr;
  return &*(after - 1);
}

namespace {

struct Tally {
  uint64_t observed = 0, once = 0, twice = 0;
};

double extrapolated(const Tally& tally, double counted, double total) {
  const double observed = static_cast<double>(tally.observed), f1 = static_cast<double>(tally.once);
  if (counted >= total || f1 == 0) return observed;
  const double q = counted / total;
  const double seen_twice = counted > 1 ? counted / (counted - 1) * 2 * static_cast<double>(tally.twice) : 0;
  return observed + f1 * f1 / (seen_twice + q / (1 - q) * f1);
}

}  // namespace

uint64_t estimate_distinct(const std::vector<const SectorSet*>& sets, const RegionFinder& regions, uint64_t counted,
                           uint64_t total) {
  std::unordered_map<uint64_t, uint32_t> blocks;
  for (const SectorSet* set : sets) {
    for (const SectorSet::Entry& entry : set->entries()) {
      if (entry.blocks != 0) blocks[entry.sector] += entry.blocks;
    }
  }
  std::map<const Region*, Tally> tallies;
  for (const auto& [sector, seen] : blocks) {
    const Region* const region = regions.find(sector * sector_bytes + sector_bytes - 1);
    Tally& tally = tallies[region];
    ++tally.observed;
    tally.once += seen == 1 ? 1 : 0;
    tally.twice += seen == 2 ? 1 : 0;
  }
  // Each region's estimate is rounded by itself: whole numbers add up to the same sum in whatever order regions lie.
  uint64_t sum = 0;
  for (const auto& [region, tally] : tallies) {
    const double distinct = extrapolated(tally, static_cast<double>(counted), static_cast<double>(total));
    auto sectors = static_cast<uint64_t>(std::llround(distinct));
    if (region != nullptr) {
      const uint64_t size = (region->end + sector_bytes - 1) / sector_bytes - region->begin / sector_bytes;
      sectors = std::min(sectors, std::max(size, tally.observed));
    }
    sum += sectors;
  }
  return sum;
}

}  // namespace kiln::emulator
