// Parts of long rows: SPLITS blocks share a row of ROW elements, a block has one part. A kernel leaves in the
// workspace, parts[row][split], what a later one needs of each part.
#include "lib/index.cuh"

constexpr Index PART = ceil_div<Index>(ROW / VECTOR, SPLITS) * VECTOR;  // elements of a block, but for a row's last

static_assert(ROW % VECTOR == 0, "a vector must not cross the end of a row");

struct Part {
  Index row;
  Index begin, length;  // in the row; the last parts may be empty
};

__device__ __forceinline__ Part part_of_block() {
  const Index block = static_cast<Index>(blockIdx.x);
  const Index begin = smaller<Index>(block % SPLITS * PART, ROW);
  return {block / SPLITS, begin, smaller<Index>(PART, ROW - begin)};
}
