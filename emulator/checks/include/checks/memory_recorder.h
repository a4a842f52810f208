// How the memory accesses of counted blocks behave: sectors, distinct sectors, bank conflicts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checks/access.h"
#include "memory/region_table.h"

namespace kiln::emulator {

/// A set of 32-byte sectors that knows in how many blocks each was seen. Open addressing: it is asked for every lane.
class SectorSet {
 public:
  SectorSet();
  /// Notes that block `stamp` touched the sector; true if that is its first time. Stamps of one set never return.
  bool touch(uint64_t sector, uint32_t stamp);

  struct Entry {
    uint64_t sector = 0;
    uint32_t stamp = 0;   // the block that touched it last
    uint32_t blocks = 0;  // 0: free
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void grow();
  std::vector<Entry> entries_;
  size_t used_ = 0;
};

class MemoryRecorder {
 public:
  void begin_block() { ++stamp_; }
  /// A memory instruction was issued, with or without lanes: one that is counted as an access to global memory, be its
  /// address generic, or to shared memory.
  void note_issue(ptx::Space space) {
    if (space == ptx::Space::shared) ++shared_issues_;
    if (space == ptx::Space::generic) ++global_issues_;
  }
  /// A warp's access to global memory, or to shared memory with offsets from the start of the block's.
  void global(const AccessRequest& request);
  void shared(const AccessRequest& request, uint64_t base);

  uint32_t blocks() const { return stamp_; }
  uint64_t global_issues() const { return global_issues_; }
  uint64_t shared_issues() const { return shared_issues_; }
  uint64_t global_sectors() const { return global_sectors_; }
  /// Distinct sectors of each block, summed over blocks; a sector both read and written counts twice.
  uint64_t block_sectors() const { return block_sectors_; }
  uint64_t shared_wavefronts() const { return shared_wavefronts_; }
  /// The same of generic addresses, whose instructions are counted as accesses to global memory.
  uint64_t generic_wavefronts() const { return generic_wavefronts_; }
  const SectorSet& loaded() const { return loaded_; }
  const SectorSet& stored() const { return stored_; }

 private:
  uint32_t stamp_ = 0;
  uint64_t global_issues_ = 0, shared_issues_ = 0;
  uint64_t global_sectors_ = 0, block_sectors_ = 0;
  uint64_t shared_wavefronts_ = 0, generic_wavefronts_ = 0;
  SectorSet loaded_, stored_;
};

/// The valid region an address lies in: an allocation or a variable; null for none.
class RegionFinder {
 public:
  /// `memory` may be null. `variables` are sorted.
  RegionFinder(const RegionTable* memory, std::span<const Region> variables) : memory_(memory), variables_(variables) {}
  const Region* find(uint64_t address) const;

 private:
  const RegionTable* memory_;
  std::span<const Region> variables_;
};

/// Distinct sectors of a whole launch of `total` blocks, estimated from the sets that recorders kept of `counted`
/// blocks; exact when all were counted.
///
/// Per valid region (and for what lies outside), Chao and Lin's estimator for sampling without replacement (2012): with
/// f1 sectors seen in one block and f2 in two, and q = counted / total,
///   distinct = observed + f1^2 / (2 f2 t / (t - 1) + f1 q / (1 - q)),   t = counted,
/// which scales data that each block has to itself by 1/q and leaves data that all blocks share alone. A region's
/// estimate never exceeds its size.
uint64_t estimate_distinct(const std::vector<const SectorSet*>& sets, const RegionFinder& regions, uint64_t counted,
                           uint64_t total);

}  // namespace kiln::emulator
