// Updates and elements of y, a thread for each. Lines are numbered as lib/rows.cuh has them.
//
// From the prelude, beside what lib/scatter.cuh and lib/rows.cuh have: THREADS; LINES_INNER, whether neighbours among
// the updates in memory are of neighbouring lines rather than along one.
#include "lib/index.cuh"
#include "lib/rows.cuh"
#include "lib/scatter.cuh"
#include "lib/store.cuh"

// A place along a line.
struct InLine {
  Index line, place;

  // Number `number` of all places, of `count` along a line. `divisor`: that, or 1 where it is 0.
  template <class Divisor>
  __device__ __forceinline__ InLine(Index number, Index lines, Divisor divisor) : line(number) {
    if constexpr (LINES_INNER) {
      place = line / lines, line -= place * lines;
    } else {
      place = take_coordinate(line, divisor);
    }
  }
};

// Calls use(element, update) for the update of this thread, with the number of its element: line by line.
template <class Use>
__device__ __forceinline__ void with_update(const TUPDATES* updates, const i32* indices, long long n, const Use& use) {
  const Index number = global_thread<THREADS, Index>(), lines = scatter_lines(n);
  if (number >= lines * Index(COUNT)) return;
  const InLine at(number, lines, COUNT);
  const Index index = row_offset<INDICES_OUTER_STRIDES>(at.line) + at.place * Index(INDICES_ALONG);
  const i32 position = position_in_y(indices[index]);
  if (position < 0) return;
  const TUPDATES update = updates[row_offset<UPDATES_OUTER_STRIDES>(at.line) + at.place * Index(UPDATES_ALONG)];
  use(static_cast<long long>(at.line) * Index(POSITIONS) + position, to_float(update));
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
