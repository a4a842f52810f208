// The gradient of the maxima of windows that do not overlap: TEAM threads find the maximum of a window, for VECTOR
// channels, and write the elements of dx under it: dy where the maximum is, else zero. One launch reads x once. Any
// strides.
//
// Elements of dx between two windows go with the first of them, those before the first window with it. Neighbouring
// teams take neighbouring channels if CHANNELS_INNER, and the threads of a team stand apart; else they are neighbours,
// and take neighbouring pixels. Parameters: pool_backward_scatter.cpp.
#include "lib/pool_gradient.cuh"
#include "lib/store.cuh"
#include "lib/window_maxima.cuh"

constexpr int TEAMS = THREADS / TEAM;  // of a block

// The places of a box in the order of memory: every TEAM-th.
struct Walk {
  Index planes, rows, columns;           // of the box; no planes if it is empty
  Index plane, row, column;              // here
  Index planes_on, rows_on, columns_on;  // from one place to the next

  __device__ __forceinline__ Walk(int member, Index depth, Index height, Index width)
      : planes(height > 0 && width > 0 ? depth : 0),
        rows(height),
        columns(width),
        plane(0),
        row(0),
        column(0),
        planes_on(0),
        rows_on(0),
        columns_on(1) {
    if constexpr (TEAM > 1) {
      if (planes <= 0) return;
      Index first = member, on = TEAM;
      column = take_coordinate(first, columns);
      row = take_coordinate(first, rows);
      plane = first;
      columns_on = take_coordinate(on, columns);
      rows_on = take_coordinate(on, rows);
      planes_on = on;
    }
  }

  __device__ __forceinline__ bool is_inside() const { return plane < planes; }
  __device__ __forceinline__ void next() {
    column += columns_on;
    row += rows_on;
    plane += planes_on;
    if (column >= columns) {
      column -= columns;
      ++row;
    }
    if (row >= rows) {
      row -= rows;
      ++plane;
    }
  }
};

// The maximum of some elements of a channel, and its pixel; -1 if there are none.
struct Maximum {
  float value = -infinity();
  Index pixel = -1;

  // Takes an element into account that stands behind.
  __device__ __forceinline__ void add(float behind, Index at) {
    const bool wins = (pixel < 0) | is_nan(behind) | (behind > value);
    value = wins ? behind : value;
    pixel = wins ? at : pixel;
  }
  // Takes another part's maximum in its place if that comes first: the first of the largest, or the last NaN. No
  // branch, here and above: the time model cannot follow one that data decide.
  __device__ __forceinline__ void merge(float other, Index at) {
    const bool here = is_nan(value), there = is_nan(other);
    const bool is_larger = (other > value) | ((other == value) & (at < pixel));
    const bool is_first = there ? !here | (at > pixel) : !here & is_larger;
    const bool wins = (at >= 0) & ((pixel < 0) | is_first);
    value = wins ? other : value;
    pixel = wins ? at : pixel;
  }
};

// Gives all threads of a team the maximum of theirs.
__device__ __forceinline__ void agree(Maximum (&found)[VECTOR], int team, int member) {
  constexpr int HALF = TEAM / 2;
  __shared__ float values[VECTOR][THREADS / 2];
  __shared__ Index pixels[VECTOR][THREADS / 2];
  const auto slot = [&](int of) { return CHANNELS_INNER ? of * TEAMS + team : team * HALF + of; };
#pragma unroll
  for (int half = HALF; half > 0; half /= 2) {
    if (member >= half && member < 2 * half) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        values[j][slot(member - half)] = found[j].value;
        pixels[j][slot(member - half)] = found[j].pixel;
      }
    }
    __syncthreads();
    if (member < half) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        found[j].merge(values[j][slot(member)], pixels[j][slot(member)]);
      }
    }
    __syncthreads();
  }
  if (member == 0) {
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) pixels[j][slot(0)] = found[j].pixel;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) found[j].pixel = pixels[j][slot(0)];
}

// The maximum of every TEAM-th element of a window.
__device__ __forceinline__ void find_maximum(const TX* __restrict__ x, const Place& window, int member,
                                             Maximum (&found)[VECTOR]) {
  constexpr int AHEAD = 4;  // loads under way
  for (Walk tap(member, T, R, S); tap.is_inside();) {
    Vector<TX, VECTOR> loaded[AHEAD];
    Index pixels[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
      const Index d = window.plane * STRIDE_D - PAD_FRONT + tap.plane * DILATION_D;
      const Index h = window.row * STRIDE_H - PAD_TOP + tap.row * DILATION_H;
      const Index w = window.column * STRIDE_W - PAD_LEFT + tap.column * DILATION_W;
      pixels[i] = -1;
      if (tap.is_inside() && d >= 0 && d < D && h >= 0 && h < H && w >= 0 && w < W) {
        pixels[i] = (d * H + h) * W + w;
        loaded[i] = load_readonly<VECTOR>(x + Input::at(window.image, window.c, d, h, w));
      }
      tap.next();
    }
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
      if (pixels[i] < 0) continue;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) found[j].add(to_float(loaded[i][j]), pixels[i]);
    }
  }
}

// Elements of dx along one axis.
struct Range {
  Index begin, end;

  // Elements of output number `output`: from the start of its window to that of the next.
  __device__ __forceinline__ Range(Index output, Index stride, Index pad, Index extent, Index outputs) {
    const Index start = output * stride - pad;
    begin = output == 0 ? 0 : smaller(larger<Index>(start, 0), extent);
    end = output == outputs - 1 ? extent : smaller(larger<Index>(start + stride, 0), extent);
  }
  __device__ __forceinline__ Index length() const { return end - begin; }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_scatter(const TDY* __restrict__ dy, const TX* __restrict__ x, TDX* __restrict__ dx, float alpha,
                          float beta, UserArguments user, long long n) {
  const int thread = static_cast<int>(threadIdx.x);
  const int member = CHANNELS_INNER ? thread / TEAMS : thread % TEAM;
  const int team = CHANNELS_INNER ? thread % TEAMS : thread / TEAM;
  const Index index = static_cast<Index>(blockIdx.x) * TEAMS + team;
  const bool exists = index < images_of(n) * Index(Z) * P * Q * (C / VECTOR);
  const Place window = place_of(exists ? index : 0, Z, P, Q);

  Maximum found[VECTOR];
  if (exists) find_maximum(x, window, member, found);
  if constexpr (TEAM > 1) agree(found, team, member);
  if (!exists) return;

  const auto incoming = user_kept<true>(
      load_readonly<VECTOR>(dy + Incoming::at(window.image, window.c, window.plane, window.row, window.column)),
      static_cast<int>(window.c), user);
  const Range planes(window.plane, STRIDE_D, PAD_FRONT, D, Z), rows(window.row, STRIDE_H, PAD_TOP, H, P),
      columns(window.column, STRIDE_W, PAD_LEFT, W, Q);
  for (Walk at(member, planes.length(), rows.length(), columns.length()); at.is_inside(); at.next()) {
    const Index d = planes.begin + at.plane, h = rows.begin + at.row, w = columns.begin + at.column;
    float results[VECTOR];
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      results[j] = found[j].pixel == (d * H + h) * W + w ? to_float(incoming[j]) : 0.0f;
    }
    store_run<true>(dx, Gradient::at(window.image, window.c, d, h, w), results, static_cast<int>(window.c),
                    {alpha, beta, user});
  }
}
