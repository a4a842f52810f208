#include "kiln/timing/address_ranges.h"

#include <algorithm>
#include <numeric>

namespace kiln::timing {

AddressRanges united(std::vector<AddressRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  AddressRanges result;
  for (const AddressRange& range : ranges) {
    if (range.begin >= range.end) continue;
    if (!result.empty() && range.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

AddressRanges without(const AddressRanges& ranges, const AddressRanges& others) {
  AddressRanges result;
  for (AddressRange range : ranges) {
    for (const AddressRange& other : others) {
      if (other.end <= range.begin || other.begin >= range.end) continue;
      if (other.begin > range.begin) result.push_back({range.begin, other.begin});
      range.begin = std::min(range.end, other.end);
    }
    if (range.begin < range.end) result.push_back(range);
  }
  return result;
}

bool meets(const AddressRanges& ranges, uint64_t begin, uint64_t end) {
  const auto first =
      std::partition_point(ranges.begin(), ranges.end(), [&](const AddressRange& range) { return range.end <= begin; });
  return first != ranges.end() && first->begin < end;
}

uint64_t bytes_of(const AddressRanges& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), uint64_t{0},
                         [](uint64_t sum, const AddressRange& range) { return sum + range.end - range.begin; });
}

}  // namespace kiln::timing
