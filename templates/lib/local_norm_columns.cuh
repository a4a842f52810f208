// Segments of columns: the axis is not the innermost dimension, a thread takes VECTOR neighbouring rows.
//
// The threads of a block are INNER_LANES side by side in each of SEGMENT_LANES segments, which lie one behind the
// other: what two segments reach is in the block's cache. From the prelude: these, what lib/rows.cuh asks for,
// X_AXIS_STRIDE.
#include "lib/rows.cuh"
#include "lib/store.cuh"

constexpr int THREADS = INNER_LANES * SEGMENT_LANES;
constexpr int NEIGHBOURS = VECTOR;

#include "lib/local_norm_line.cuh"

// Which elements this thread has.
struct Column {
  Index inner, outer;
  int first;  // along the axis

  __device__ __forceinline__ Column() {
    Index number = static_cast<Index>(blockIdx.x);
    const Index lanes = take_coordinate(number, ceil_div<long long>(INNER, INNER_LANES * VECTOR));
    const Index segments = take_coordinate(number, ceil_div<long long>(ROW, SEGMENT_LANES * SEGMENT));
    inner = (lanes * INNER_LANES + static_cast<Index>(threadIdx.x) % INNER_LANES) * VECTOR;
    first = (static_cast<int>(segments) * SEGMENT_LANES + static_cast<int>(threadIdx.x) / INNER_LANES) * SEGMENT;
    outer = number;
  }
  __device__ __forceinline__ bool has_elements() const { return inner < INNER && first < ROW; }
  // Offset of element 0 of the axis.
  template <const long long (&OUTER_STRIDES)[5], const auto& STEP>
  __device__ __forceinline__ Index offset() const {
    return row_offset<OUTER_STRIDES>(outer) + inner * Index(STEP);
  }
};

// COUNT elements along the axis from `first` on, 0 outside it; `column`: element 0.
template <int RUN, const auto& STEP, const auto& AXIS_STRIDE, int COUNT, class T, class Enter = AsStored>
__device__ __forceinline__ void load_column(const T* column, int first, Values (&values)[COUNT],
                                            const Enter& enter = {}) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const int position = first + i;
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) values[i][j] = 0.0f;
    if (position < 0 || position >= ROW) continue;
    as_floats(enter(load_neighbours<RUN, STEP>(column + position * Index(AXIS_STRIDE))), values[i]);
  }
}

// Blends a segment with what is there.
template <int RUN, const auto& STEP, const auto& AXIS_STRIDE, class T, class Scales>
__device__ __forceinline__ void blend_column(const T* column, int first, Values (&values)[SEGMENT], Scales scales) {
  Values old[SEGMENT] = {};
  if constexpr (Scales::READS) load_column<RUN, STEP, AXIS_STRIDE>(column, first, old);
#pragma unroll
  for (int i = 0; i < SEGMENT; ++i) {
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) values[i][j] = scales.of(values[i][j], old[i][j]);
  }
}

// Stores those of a segment that are inside.
template <int RUN, const auto& STEP, const auto& AXIS_STRIDE, class T>
__device__ __forceinline__ void store_column(T* column, int first, const Values (&values)[SEGMENT]) {
#pragma unroll
  for (int i = 0; i < SEGMENT; ++i) {
    if (first + i < ROW) store_neighbours<RUN, STEP>(column + (first + i) * Index(AXIS_STRIDE), values[i]);
  }
}

// Stores a segment of the result, whose column begins at element `offset` of y: all that is read of what it is blended
// with, and of the user's tensors, is read before anything is stored.
template <int RUN, const auto& STEP, const auto& AXIS_STRIDE, class T>
__device__ __forceinline__ void finish_column(T* y, Index offset, int first, Values (&values)[SEGMENT],
                                              const OutputArguments& output) {
  blend_column<RUN, STEP, AXIS_STRIDE>(y + offset, first, values, ResultScales{output.alpha, output.beta});
#pragma unroll
  for (int i = 0; i < SEGMENT; ++i) {
    if (first + i < ROW) {
      finish_along<T, RUN, STEP>(offset + (first + i) * Index(AXIS_STRIDE), values[i], output.user);
    }
  }
  store_column<RUN, STEP, AXIS_STRIDE>(y + offset, first, values);
}

// x and means, those of this column.
template <int COUNT, class Enter>
__device__ __forceinline__ void load_line(const TX* x, const TMEANS* means, const Column& column, int first,
                                          Line<COUNT>& line, const Enter& enter) {
  load_column<X_RUN, X_STEP, X_AXIS_STRIDE>(x + column.offset<X_OUTER_STRIDES, X_STEP>(), first, line.x, enter);
  if constexpr (HAS_MEANS) {
    load_column<MEANS_RUN, MEANS_STEP, MEANS_AXIS_STRIDE>(means + column.offset<MEANS_OUTER_STRIDES, MEANS_STEP>(),
                                                          first, line.means);
  }
}
