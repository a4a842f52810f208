// Parts of long rows: SPLITS blocks share a row of ROW elements, a block has one part. A kernel leaves in the
// workspace, parts[row][split], what a later one needs of each part. VECTOR divides ROW.
#include "lib/index.cuh"

struct Part {
  Index row;
  Index begin, length;  // in the row; the last parts may be empty
};

__device__ __forceinline__ Part part_of_block() {
  const Index length = ceil_div<Index>(ROW / VECTOR, SPLITS) * VECTOR;  // of all parts but a row's last
  const Index block = static_cast<Index>(blockIdx.x);
  const Index begin = smaller<Index>(block % SPLITS * length, ROW);
  return {block / SPLITS, begin, smaller<Index>(length, ROW - begin)};
}
