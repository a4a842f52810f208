// Device memory that is host memory: mappings, their bounds, and what was freed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "memory/region_table.h"

namespace kiln::emulator {

/// Allocates memory lazily and knows every valid range of one context, or the pinned memory of the process.
/// Thread-safe.
///
/// Each allocation is a private mapping of its own, reserved without commit, between guard pages that nothing may
/// touch: 20 GiB of which one page is written costs one page. Freed ranges stay reserved and inaccessible for a while
/// (quarantine), so that a stale pointer does not silently meet a new allocation. A mapping per allocation also means
/// that the kernel's limit on mappings (65,530 by default) allows some 30,000 allocations at a time, or 16,000 when it
/// is tracked what has been written to them.
class AddressSpace {
 public:
  /// State of an allocation's contents before anybody has written them.
  enum class Fresh { written, unwritten };

  /// `capacity`: bytes that allocations may add up to. `noun` names them in reports, e.g. "allocation".
  AddressSpace(uint64_t capacity, std::string noun, Fresh fresh = Fresh::written);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// Address of `bytes` > 0 bytes, aligned to a page, zero until written; nothing when the capacity or the host's
  /// address space is exhausted.
  std::optional<uint64_t> allocate(uint64_t bytes);
  /// Frees what allocate() returned; false if `address` is no such address.
  bool free(uint64_t address);

  /// Makes a range valid that somebody else owns (a module's variable, registered host memory). False if it overlaps
  /// a valid range. `name` is for reports.
  bool add(uint64_t begin, uint64_t bytes, std::string name);
  /// The same for a group, which is valid and removed as a whole: its first region's begin names it.
  bool add(RegionGroup group);
  /// Undoes add(); false if nothing was added there.
  bool remove(uint64_t begin);

  struct Range {
    uint64_t begin = 0;
    uint64_t bytes = 0;
  };
  /// The valid range that holds `address`.
  std::optional<Range> find(uint64_t address) const;
  /// True if all of [address, address + bytes) lies in one valid range.
  bool contains(uint64_t address, uint64_t bytes) const;

  /// The bytes of [address, address + bytes), which lies in one range, have been written.
  void mark_written(uint64_t address, uint64_t bytes);
  /// The number of the next launch, from 1 to most_launches, for the marks it leaves (Region::marks); takes all marks
  /// off when numbers begin again. No launch may be running.
  uint32_t next_launch();
  /// They have been copied from valid memory at `source`, of this space or another: written where that was.
  void mark_copied(uint64_t address, uint64_t source, uint64_t bytes);
  /// For the report of a call that was given a stale or wrong address: "4 bytes into allocation 7 of 64 bytes".
  std::string describe(uint64_t address) const;

  uint64_t capacity() const { return capacity_; }
  uint64_t free_bytes() const;

  /// Changes whenever a range becomes valid or invalid.
  uint64_t version() const;
  /// Appends the valid ranges and the quarantined ones; returns the version they belong to.
  uint64_t list(RegionTable::Contents& to) const;

 private:
  struct Entry {
    uint64_t bytes = 0;         // of a group, up to its end
    uint64_t mapped_bytes = 0;  // without guards; 0 when somebody else owns the memory
    std::string name{};
    uint8_t* written = nullptr;  // Region::written, followed by Region::marks in one mapping; null if not tracked
    RegionGroup group{};         // null if it is one range
    PieceMarks* marks() const;
  };
  struct Freed {
    Region region;
    uint64_t mapped_bytes = 0;
  };

  bool overlaps(uint64_t begin, uint64_t bytes) const;
  uint8_t* flags_of(uint64_t address) const;
  void quarantine(uint64_t address, const Entry& entry);

  const uint64_t capacity_;
  const std::string noun_;
  const Fresh fresh_;
  mutable std::mutex mutex_;         // guards everything below
  std::map<uint64_t, Entry> valid_;  // by first address
  std::deque<Freed> freed_;          // oldest first
  uint64_t freed_bytes_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t allocations_ = 0;  // ever made: their numbers in reports
  uint64_t version_ = 0;
  uint32_t launch_ = 0;
};

}  // namespace kiln::emulator
