// Boxes of a tensor: which of their rows lie where in global and in shared memory.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/tensor_map.h"

namespace kiln::emulator {

using BoxCorner = std::array<int32_t, 5>;  ///< the first element's coordinates, innermost first

/// One row of a box: elements side by side in both memories.
struct BoxRow {
  uint32_t shared_offset = 0;   ///< of the row, from the beginning of the box, before swizzling
  uint64_t address = 0;         ///< in global memory, of byte `begin`
  uint32_t begin = 0, end = 0;  ///< bytes of the row that are elements of the tensor; equal if none is
  uint32_t bytes = 0;           ///< of the whole row
};

/// The rows of a box in order.
class BoxRows {
 public:
  BoxRows(const TensorMap& map, const BoxCorner& corner);
  /// False behind the last row.
  bool next(BoxRow& row);

 private:
  const TensorMap& map_;
  const BoxCorner& corner_;
  std::array<uint32_t, 5> index_{};  // of the next row, in the box
  uint32_t row_ = 0;
  uint32_t begin_ = 0, end_ = 0;  // as in BoxRow
  bool over_ = false;
};

/// Where 16 bytes lie whose place without swizzling is `offset` in shared memory: the pieces of a span change places by
/// the number of the 128-byte line that they are in.
inline uint64_t swizzled(uint64_t offset, uint32_t span) {
  return span == 0 ? offset : offset ^ ((offset >> 7 & (span / 16 - 1)) << 4);
}

}  // namespace kiln::emulator
