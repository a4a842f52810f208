// Which device addresses are valid: the allocations of one context, as launches see them.
#pragma once

#include <cstdint>
#include <memory>
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

/// Regions that become valid and invalid together, such as the variables of a module: one or more, sorted, and none
/// else between them. A table shares them, for modules come and go while others have thousands of variables.
using RegionGroup = std::shared_ptr<const std::vector<Region>>;

/// Immutable and sorted, so that all host threads of a launch may search it without a lock.
class RegionTable {
 public:
  /// None of them need be sorted, and none overlap each other.
  struct Contents {
    std::vector<Region> regions{};
    std::vector<RegionGroup> groups{};
    std::vector<Region> freed{};  ///< Valid once, for describe() to name a use after free: no access there is valid.
  };

  RegionTable() = default;
  explicit RegionTable(Contents contents);

  /// The region that holds `address`, or null.
  const Region* find(uint64_t address) const;
  /// The region nearest to `address`, for reports; null when the table is empty.
  const Region* nearest(uint64_t address) const;
  /// Where `address` lies, for reports: "4 bytes past the end of allocation 7 of 4096 bytes", "in allocation 3 of 64
  /// bytes, which was freed", "null", "no allocation is near".
  std::string describe(uint64_t address) const;

 private:
  Contents contents_;
};

}  // namespace kiln::emulator
