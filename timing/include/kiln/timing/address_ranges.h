// Sets of addresses, as ranges.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::timing {

struct AddressRange {
  uint64_t begin = 0, end = 0;  ///< First byte, and one past the last.
  bool operator==(const AddressRange&) const = default;
};

/// Sorted, none empty, none touching the next.
using AddressRanges = std::vector<AddressRange>;

/// All that any of `ranges` holds.
AddressRanges united(std::vector<AddressRange> ranges);

/// The parts of `ranges` that no range of `others` holds.
AddressRanges without(const AddressRanges& ranges, const AddressRanges& others);

/// Whether one holds a byte of [begin, end).
bool meets(const AddressRanges& ranges, uint64_t begin, uint64_t end);

uint64_t bytes_of(const AddressRanges& ranges);

}  // namespace kiln::timing
