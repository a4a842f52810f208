// Segments of rows: the axis is the innermost dimension, and a thread takes VECTOR neighbours along it, which the
// vectors of one or several accesses hold. The ends that its windows reach are in the vectors of the threads beside it:
// in the cache.
//
// From the prelude: THREADS, ROWS, ROWS_PER_IMAGE, DYNAMIC_N, and what lib/rows.cuh asks for. VECTOR divides ROW.
#include "lib/rows.cuh"
#include "lib/store.cuh"

constexpr int SEGMENT = VECTOR;
constexpr int NEIGHBOURS = 1;

#include "lib/local_norm_line.cuh"

// Which elements this thread has.
struct Segment {
  Index row;
  int first;

  __device__ __forceinline__ Segment() {
    row = global_thread<THREADS, Index>();
    first = static_cast<int>(take_coordinate(row, ROW / SEGMENT)) * SEGMENT;
  }
  __device__ __forceinline__ bool has_elements(long long n) const {
    return row < (DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS);
  }
  template <const long long (&OUTER_STRIDES)[5], const auto& STEP>
  __device__ __forceinline__ Index offset() const {
    return row_offset<OUTER_STRIDES>(row) + first * Index(STEP);
  }
};

// COUNT elements of a row from BEFORE ahead of the segment at `first` on, 0 outside it; `segment`: its first element.
template <int BEFORE, int RUN, const auto& STEP, int COUNT, class T, class Enter = AsStored>
__device__ __forceinline__ void load_segment(const T* segment, int first, Values (&values)[COUNT],
                                             const Enter& enter = {}) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) values[i][0] = 0.0f;
#pragma unroll
  for (int at = -ceil_div(BEFORE, RUN) * RUN; at < COUNT - BEFORE; at += RUN) {
    if (first + at < 0 || first + at >= ROW) continue;
    const auto run = enter(load<RUN>(segment + at * Index(STEP)));
#pragma unroll
    for (int j = 0; j < RUN; ++j) {
      const int i = at + j + BEFORE;
      if (i >= 0 && i < COUNT) values[i][0] = to_float(run[j]);
    }
  }
}

// The values of a segment as neighbours.
__device__ __forceinline__ void as_neighbours(const Values (&values)[SEGMENT], float (&neighbours)[SEGMENT]) {
#pragma unroll
  for (int i = 0; i < SEGMENT; ++i) neighbours[i] = values[i][0];
}

// x and means from BEFORE ahead of the segment on.
template <int BEFORE, int COUNT, class Enter>
__device__ __forceinline__ void load_line(const TX* x, const TMEANS* means, const Segment& segment, Line<COUNT>& line,
                                          const Enter& enter) {
  load_segment<BEFORE, X_RUN, X_STEP>(x + segment.offset<X_OUTER_STRIDES, X_STEP>(), segment.first, line.x, enter);
  if constexpr (HAS_MEANS) {
    load_segment<BEFORE, MEANS_RUN, MEANS_STEP>(means + segment.offset<MEANS_OUTER_STRIDES, MEANS_STEP>(),
                                                segment.first, line.means);
  }
}
