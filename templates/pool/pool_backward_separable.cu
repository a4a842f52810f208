// The gradient of pooling by large windows, one axis after the other: an element visits T + R + S taps, not T R S. Any
// strides.
//
// The maximum of a window is that of its rows' maxima, so its column and its row are found one by one: for every window
// the tap of the maximum along each row of x, then of these maxima along the rows, then along the planes. dy goes the
// way back, to the planes, rows and columns that were noted. Averages go the way back only. A kernel for each step,
// with packed tensors between them in the order of threads; a thread takes RUN neighbours along the step's axis, whose
// windows share most of their taps. Neighbouring threads take neighbouring channels if CHANNELS_INNER, else neighbours
// along the columns. HAS_PLANES: whether windows move along the planes. Parameters: pool_backward_separable.cpp.
#include "lib/pool_gradient.cuh"
#include "lib/store.cuh"
#include "lib/window_maxima.cuh"
#include "lib/window_outputs.cuh"

// Windows along one axis.
struct Axis {
  Index taps, dilation, stride, pad, extent, outputs;

  __device__ __forceinline__ Index start(Index output) const { return output * stride - pad; }
};

__device__ __forceinline__ Axis planes_axis() {
  return {Index(T), Index(DILATION_D), Index(STRIDE_D), Index(PAD_FRONT), Index(D), Index(Z)};
}
__device__ __forceinline__ Axis rows_axis() {
  return {Index(R), Index(DILATION_H), Index(STRIDE_H), Index(PAD_TOP), Index(H), Index(P)};
}
__device__ __forceinline__ Axis columns_axis() {
  return {Index(S), Index(DILATION_W), Index(STRIDE_W), Index(PAD_LEFT), Index(W), Index(Q)};
}

enum Along { PLANES, ROWS, COLUMNS };

// A thread of a step along an axis: RUN neighbours of the result, for VECTOR channels.
template <Along ALONG>
struct Step {
  bool exists;
  Place place;   // the first of them
  Index extent;  // of the result, along the axis

  __device__ __forceinline__ Step(long long n, long long planes, long long rows, long long columns) {
    extent = static_cast<Index>(ALONG == PLANES ? planes : ALONG == ROWS ? rows : columns);
    if (ALONG == PLANES) planes = ceil_div<long long>(planes, RUN);
    if (ALONG == ROWS) rows = ceil_div<long long>(rows, RUN);
    if (ALONG == COLUMNS) columns = ceil_div<long long>(columns, RUN);
    const Index thread = global_thread<THREADS, Index>();
    exists = thread < images_of(n) * Index(planes) * Index(rows) * Index(columns) * (Index(C) / VECTOR);
    place = place_of(thread, planes, rows, columns);
    position(place) *= RUN;
  }

  __device__ __forceinline__ static Index& position(Place& of) {
    return ALONG == PLANES ? of.plane : ALONG == ROWS ? of.row : of.column;
  }
  __device__ __forceinline__ Index first() const { return position(const_cast<Place&>(place)); }
  // The place with another position along the axis.
  __device__ __forceinline__ Place at(Index along) const {
    Place result = place;
    position(result) = along;
    return result;
  }
  // Calls `store_at(i, place)` for those of the neighbours that exist.
  template <class StoreAt>
  __device__ __forceinline__ void for_each(StoreAt store_at) const {
#pragma unroll
    for (int i = 0; i < RUN; ++i) {
      if (i == 0 || first() + i < extent) store_at(i, at(first() + i));
    }
  }
};

// A maximum along an axis: the first of the largest, or the last NaN.
struct Maximum {
  float value = -infinity();
  Index position = -1;  // none

  // Takes elements into account that stand behind.
  __device__ __forceinline__ void add(float behind, Index at) {
    if (at < 0 || (position >= 0 && !is_nan(behind) && !(behind > value))) return;
    value = behind;
    position = at;
  }
  __device__ __forceinline__ void add(const Maximum& behind) { add(behind.value, behind.position); }
};

// The maxima of RUN neighbouring windows along an axis.
struct Maxima {
  Maximum found[RUN][VECTOR];

  // `load_at(position)`: what stands there. Where there are several windows they start one element apart, and have no
  // fewer than RUN taps: all of them share those from the last start to the first end.
  template <class LoadAt>
  __device__ __forceinline__ Maxima(const Axis& axis, Index output, LoadAt load_at) {
    const Index start = axis.start(output), shared_start = start + (RUN - 1);
    const Index shared_taps = axis.taps - (RUN - 1);
    const Index skipped = shared_start >= 0 ? 0 : (axis.dilation - 1 - shared_start) / axis.dilation;
    const Index end = skipped + taps_inside<Index>(shared_start, shared_taps, axis.dilation, 0, axis.extent);
    Maximum shared[VECTOR];
    if (skipped < end) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) shared[j].position = shared_start + skipped * axis.dilation;
    }
#pragma unroll 4
    for (Index tap = skipped; tap < end; ++tap) {
      const Index at = shared_start + tap * axis.dilation;
      const Vector<TX, VECTOR> loaded = load_at(at);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        const float value = to_float(loaded[j]);
        if (!is_nan(value) && !(value > shared[j].value)) continue;
        shared[j].value = value;
        shared[j].position = at;
      }
    }
    // Before the shared taps, from behind: window i has those from the i-th on.
    const auto inside = [&](Index at) { return at >= 0 && at < axis.extent; };
#pragma unroll
    for (int i = RUN - 2; i >= 0; --i) {
      const Index at = start + i;
      Vector<TX, VECTOR> loaded;
      if (inside(at)) loaded = load_at(at);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        if (inside(at)) found[i][j].add(to_float(loaded[j]), at);
        if (i < RUN - 2) found[i][j].add(found[i + 1][j]);
      }
    }
    Maximum behind[VECTOR];
#pragma unroll
    for (int i = 0; i < RUN; ++i) {
      const Index at = start + axis.taps - 1 + i;
      Vector<TX, VECTOR> loaded;
      if (i > 0 && inside(at)) loaded = load_at(at);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        if (i > 0 && inside(at)) behind[j].add(to_float(loaded[j]), at);
        found[i][j].add(shared[j]);
        found[i][j].add(behind[j]);
      }
    }
  }

  __device__ __forceinline__ Vector<TX, VECTOR> values(int i) const {
    Vector<TX, VECTOR> result;
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) result[j] = from_float<TX>(found[i][j].value);
    return result;
  }
  __device__ __forceinline__ Vector<TapNumber, VECTOR> taps(int i, const Axis& axis, Index output) const {
    Vector<TapNumber, VECTOR> result;
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      const Index position = found[i][j].position;
      result[j] = position < 0 ? NO_TAP : static_cast<TapNumber>((position - axis.start(output + i)) / axis.dilation);
    }
    return result;
  }
};

// Sums of what the outputs along one axis give to RUN neighbouring positions.
struct Sums {
  float of[RUN][VECTOR] = {};

  // `values_at(output)`: of an output; `taps_at(output)`: which taps they belong to, of maxima.
  template <class ValuesAt, class TapsAt>
  __device__ __forceinline__ Sums(const Axis& axis, Index position, ValuesAt values_at, TapsAt taps_at) {
    const Holders first(position, axis.pad, axis.taps, axis.dilation, axis.stride, axis.outputs);
    const Holders last(position + (RUN - 1), axis.pad, axis.taps, axis.dilation, axis.stride, axis.outputs);
#pragma unroll 4
    for (Index output = first.first; output <= last.last; ++output) {
      const Index distance = position - axis.start(output);
      if (distance % axis.dilation != 0) continue;
      const Index tap = distance / axis.dilation;
      const Vector<float, VECTOR> values = values_at(output);
      Vector<TapNumber, VECTOR> taps;
      if constexpr (MODE == POOL_MAX) taps = taps_at(output);
#pragma unroll
      for (int i = 0; i < RUN; ++i) {
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) {
          bool holds;
          if constexpr (MODE == POOL_MAX) {
            holds = taps[j] == tap + i;
          } else {
            holds = RUN == 1 || (tap + i >= 0 && tap + i < axis.taps);
          }
          if (holds) of[i][j] += values[j];
        }
      }
    }
  }

  __device__ __forceinline__ Vector<float, VECTOR> values(int i) const {
    Vector<float, VECTOR> result;
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) result[j] = of[i][j];
    return result;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_maxima_of_columns(const TX* __restrict__ x, TX* __restrict__ maxima, TapNumber* __restrict__ taps,
                                    long long n) {
  const Step<COLUMNS> step(n, D, H, Q);
  if (!step.exists) return;
  const Maxima found(columns_axis(), step.first(), [&](Index column) {
    return load_readonly<VECTOR>(x +
                                 Input::at(step.place.image, step.place.c, step.place.plane, step.place.row, column));
  });
  step.for_each([&](int i, const Place& place) {
    const Index at = packed_at(place, D, H, Q);
    store(maxima + at, found.values(i));
    store(taps + at, found.taps(i, columns_axis(), step.first()));
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_maxima_of_rows(const TX* __restrict__ columns, TX* __restrict__ maxima, TapNumber* __restrict__ taps,
                                 long long n) {
  const Step<ROWS> step(n, D, P, Q);
  if (!step.exists) return;
  const Maxima found(rows_axis(), step.first(),
                     [&](Index row) { return load_readonly<VECTOR>(columns + packed_at(step.at(row), D, H, Q)); });
  step.for_each([&](int i, const Place& place) {
    const Index at = packed_at(place, D, P, Q);
    if constexpr (HAS_PLANES) store(maxima + at, found.values(i));
    store(taps + at, found.taps(i, rows_axis(), step.first()));
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_maxima_of_planes(const TX* __restrict__ rows, TapNumber* __restrict__ taps, long long n) {
  const Step<PLANES> step(n, Z, P, Q);
  if (!step.exists) return;
  const Maxima found(planes_axis(), step.first(),
                     [&](Index plane) { return load_readonly<VECTOR>(rows + packed_at(step.at(plane), D, P, Q)); });
  step.for_each([&](int i, const Place& place) {
    store(taps + packed_at(place, Z, P, Q), found.taps(i, planes_axis(), step.first()));
  });
}

// Elements of dy as the first step back takes them: those of averages over what they divide by.
__device__ __forceinline__ Vector<float, VECTOR> incoming_at(const TDY* dy, const Place& output,
                                                             const UserArguments& user) {
  const auto loaded = user_kept<true>(
      load_readonly<VECTOR>(dy + Incoming::at(output.image, output.c, output.plane, output.row, output.column)),
      static_cast<int>(output.c), user);
  float scale = 1.0f;
  if constexpr (MODE != POOL_MAX) {
    scale = average_scale(planes_axis().start(output.plane), rows_axis().start(output.row),
                          columns_axis().start(output.column));
  }
  Vector<float, VECTOR> values;
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) values[j] = MODE == POOL_MAX ? to_float(loaded[j]) : to_float(loaded[j]) * scale;
  return values;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_to_planes(const TDY* __restrict__ dy, const TapNumber* __restrict__ taps, float* __restrict__ planes,
                            UserArguments user, long long n) {
  const Step<PLANES> step(n, D, P, Q);
  if (!step.exists) return;
  const Sums sums(
      planes_axis(), step.first(), [&](Index z) { return incoming_at(dy, step.at(z), user); },
      [&](Index z) { return load_readonly<VECTOR>(taps + packed_at(step.at(z), Z, P, Q)); });
  step.for_each([&](int i, const Place& place) { store(planes + packed_at(place, D, P, Q), sums.values(i)); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_to_rows(const TDY* __restrict__ dy, const float* __restrict__ planes,
                          const TapNumber* __restrict__ taps, float* __restrict__ rows, UserArguments user,
                          long long n) {
  const Step<ROWS> step(n, D, H, Q);
  if (!step.exists) return;
  const auto values_at = [&](Index p) {
    if constexpr (HAS_PLANES) return load_readonly<VECTOR>(planes + packed_at(step.at(p), D, P, Q));
    return incoming_at(dy, step.at(p), user);
  };
  const Sums sums(rows_axis(), step.first(), values_at,
                  [&](Index p) { return load_readonly<VECTOR>(taps + packed_at(step.at(p), D, P, Q)); });
  step.for_each([&](int i, const Place& place) { store(rows + packed_at(place, D, H, Q), sums.values(i)); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_to_columns(const float* __restrict__ rows, const TapNumber* __restrict__ taps, TDX* __restrict__ dx,
                             float alpha, float beta, UserArguments user, long long n) {
  const Step<COLUMNS> step(n, D, H, W);
  if (!step.exists) return;
  const Sums sums(
      columns_axis(), step.first(),
      [&](Index q) { return load_readonly<VECTOR>(rows + packed_at(step.at(q), D, H, Q)); },
      [&](Index q) { return load_readonly<VECTOR>(taps + packed_at(step.at(q), D, H, Q)); });
  step.for_each([&](int i, const Place& place) {
    store_run<true>(dx, Gradient::at(place.image, place.c, place.plane, place.row, place.column), sums.of[i],
                    static_cast<int>(place.c), {alpha, beta, user});
  });
}
