// Updates and elements of y, a thread for each. Lines are numbered as lib/rows.cuh has them.
//
// From the prelude, beside what lib/scatter.cuh and lib/rows.cuh have: THREADS; LINES_INNER, whether neighbours among
// the updates in memory are of neighbouring lines rather than along one.
#include "lib/index.cuh"
#include "lib/rows.cuh"
#include "lib/scatter.cuh"
#include "lib/store.cuh"

// Calls use(element, update) for the update of this thread, with the number of its element: line by line.
template <class Use>
__device__ __forceinline__ void with_update(const TUPDATES* updates, const i32* indices, long long n, const Use& use) {
  const Index number = global_thread<THREADS, Index>(), lines = scatter_lines(n);
  if (number >= lines * Index(COUNT)) return;
  Index line = number, i;
  if constexpr (LINES_INNER) {
    i = line / lines, line -= i * lines;
  } else {
    i = take_coordinate(line, COUNT);
  }
  const i32 position = position_in_y(indices[row_offset<INDICES_OUTER_STRIDES>(line) + i * Index(INDICES_ALONG)]);
  if (position < 0) return;
  const TUPDATES update = updates[row_offset<UPDATES_OUTER_STRIDES>(line) + i * Index(UPDATES_ALONG)];
  use(static_cast<long long>(line) * Index(POSITIONS) + position, to_float(update));
}

// Stores the value of this thread's element of y: value_of(number), with its number line by line.
template <class ValueOf>
__device__ __forceinline__ void store_scattered(TY* y, long long n, const OutputArguments& output,
                                                const ValueOf& value_of) {
  const Index number = global_thread<THREADS, Index>();
  Index line = number;
  const Index position = take_coordinate(line, DIVISOR);
  if (line >= scatter_lines(n)) return;
  store_result(y, row_offset<Y_OUTER_STRIDES>(line) + position * Index(Y_ALONG), value_of(number), 0, output);
}
