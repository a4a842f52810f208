#include "scheduler/tensor_boxes.h"

#include <algorithm>

namespace kiln::emulator {

BoxRows::BoxRows(const TensorMap& map, const BoxCorner& corner) : map_(map), corner_(corner) {
  const int64_t first = corner[0], extent = int64_t{map.last[0]} + 1, box = map.box[0];
  const int64_t begin = std::clamp<int64_t>(-first, 0, box), end = std::clamp<int64_t>(extent - first, begin, box);
  begin_ = static_cast<uint32_t>(begin) * map.element_bytes;
  end_ = static_cast<uint32_t>(end) * map.element_bytes;
}

bool BoxRows::next(BoxRow& row) {
  if (over_) return false;
  row.bytes = uint32_t{map_.box[0]} * map_.element_bytes;
  row.shared_offset = row_++ * row.bytes;
  bool inside = true;
  int64_t offset = int64_t{corner_[0]} * map_.element_bytes + begin_;
  for (uint32_t d = 1; d < map_.rank; ++d) {
    const int64_t coordinate = int64_t{corner_[d]} + index_[d];
    inside = inside && coordinate >= 0 && coordinate <= map_.last[d];
    if (inside) offset += coordinate * static_cast<int64_t>(map_.byte_stride[d]);
  }
  row.begin = begin_;
  row.end = inside ? end_ : begin_;
  row.address = map_.address + static_cast<uint64_t>(offset);
  over_ = true;
  for (uint32_t d = 1; d < map_.rank && over_; ++d) {
    over_ = ++index_[d] == map_.box[d];
    if (over_) index_[d] = 0;
  }
  return true;
}

}  // namespace kiln::emulator
