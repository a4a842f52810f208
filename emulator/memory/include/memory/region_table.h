// Which device addresses are valid: the allocations of one context, as launches see them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::emulator {

/// Marks of a piece of global memory: its last write and the reads since, as checks/global_shadow.h describes them.
/// 0: none.
struct PieceMarks {
  uint64_t write = 0, read = 0;
};

/// Launches that marks tell apart.
inline constexpr uint32_t most_launches = 2047;

/// One valid range of device addresses (an allocation, a module's global variable, pinned host memory).
/// Device memory is host memory: the address is the host address.
struct Region {
  uint64_t begin = 0;  ///< First valid byte.
  uint64_t end = 0;    ///< One past the last valid byte.
  std::string name;    ///< For reports, e.g. "allocation 7 of 4096 bytes", "global variable table".
  /// A byte for each byte of the region: 1 once that has been written. Null: everything counts as written.
  uint8_t* written = nullptr;
  /// Marks of the region's pieces, which are as large as a kernel's smallest access: as many as it has bytes. Null:
  /// races are not looked for here.
  PieceMarks* marks = nullptr;
};

/// Immutable and sorted, so that all host threads of a launch may search it without a lock.
class RegionTable {
 public:
  RegionTable() = default;
  /// `regions` need not be sorted; they must not overlap each other. `freed` are ranges that were valid once, kept only
  /// so that describe() can name a use after free; no access to them is valid.
  explicit RegionTable(std::vector<Region> regions, std::vector<Region> freed = {});

  /// The region that holds `address`, or null.
  const Region* find(uint64_t address) const;
  /// The region nearest to `address`, for reports; null when the table is empty.
  const Region* nearest(uint64_t address) const;
  /// Where `address` lies, for reports: "4 bytes past the end of allocation 7 of 4096 bytes", "in allocation 3 of 64
  /// bytes, which was freed", "null", "no allocation is near".
  std::string describe(uint64_t address) const;

 private:
  std::vector<Region> regions_;
  std::vector<Region> freed_;
};

}  // namespace kiln::emulator
