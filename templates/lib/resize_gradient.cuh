// The gradient of resizing along each axis: which elements of dy an element of dx is a sum of, and with what weights.
//
// From the prelude: as lib/resize.cuh, whose x and y are dx and dy; and for columns_of_share(), MOST_COLUMNS.
#include "lib/resize.cuh"

using Gradient = Input;
using Incoming = Output;

// Elements of y from `first` on and before `last`, which depend on one of x, and a few others beside them.
struct Outputs {
  Index first, last;
};

// ceil(numerator / step), from 0 to `outputs`.
__device__ __forceinline__ Index first_output(Position numerator, Position step, Index outputs) {
  if (numerator <= 0) return 0;
  const Position quotient = (numerator + step - 1) / step;
  return quotient < static_cast<Position>(outputs) ? static_cast<Index>(quotient) : outputs;
}

// An output is made of elements from TAPS / 2 - 1 before the one before its position, `b`, to TAPS / 2 behind it; the
// nearest one is b or b + 1. At the ends of x are also the outputs that stand beyond.
template <int TAPS>
__device__ __forceinline__ Outputs outputs_of(Index element, Index extent, Index outputs, Position step, Position start,
                                              Position denominator) {
  if (step == 0) return {0, outputs};
  constexpr int behind = TAPS == 4 ? 2 : 1, before = TAPS == 4 ? 1 : 0;
  Outputs range = {0, outputs};
  // The output at i has its position at (i step + start) / denominator.
  const Position at = static_cast<Position>(element);
  if (element > 0) range.first = first_output((at - behind) * denominator - start, step, outputs);
  if (element < extent - 1) range.last = first_output((at + before + 1) * denominator - start, step, outputs);
  return range;
}

__device__ __forceinline__ Outputs planes_with(Index d) {
  return outputs_of<TAPS_D>(d, D, Z, STEP_D, START_D, DENOMINATOR_D);
}
__device__ __forceinline__ Outputs rows_with(Index h) {
  return outputs_of<TAPS_H>(h, H, P, STEP_H, START_H, DENOMINATOR_H);
}
__device__ __forceinline__ Outputs columns_with(Index w) {
  return outputs_of<TAPS_W>(w, W, Q, STEP_W, START_W, DENOMINATOR_W);
}

// The part of an element of x in an output.
struct Share {
  bool exists;
  float weight;
};

// Elements outside x are those at its ends: their weights count together.
template <int TAPS>
__device__ __forceinline__ Share share_of(Index element, const Taps<TAPS>& taps) {
  Share share = {false, 0.0f};
#pragma unroll
  for (int i = 0; i < TAPS; ++i) {
    const bool is_it = taps.positions[i] == element;
    share.exists = share.exists | is_it;
    share.weight += is_it ? taps.weights[i] : 0.0f;
  }
  return share;
}

// Columns of dy that an element of dx is in, as fast kernels keep them: its shares in MOST_COLUMNS of them, or,
// where that is 0 because there can be many, which they are.
struct Columns {
  Index w;
  Outputs range;
  Share shares[MOST_COLUMNS > 0 ? MOST_COLUMNS : 1];
};

__device__ __forceinline__ Columns columns_around(Index w, float cubic) {
  Columns columns = {w, columns_with(w)};
#pragma unroll
  for (int i = 0; i < MOST_COLUMNS; ++i) {
    const Index q = columns.range.first + i;
    columns.shares[i] = share_of(w, columns_of(smaller<Index>(q, Q - 1), cubic));
    columns.shares[i].exists = columns.shares[i].exists & (q < columns.range.last);
  }
  return columns;
}

// Calls visit(q, share) for each column; some of few do not exist, which costs less than to leave them out.
template <class Visit>
__device__ __forceinline__ void for_each_column(const Columns& columns, float cubic, Visit visit) {
  if constexpr (MOST_COLUMNS > 0) {
#pragma unroll
    for (int i = 0; i < MOST_COLUMNS; ++i) visit(smaller<Index>(columns.range.first + i, Q - 1), columns.shares[i]);
  } else {
    for (Index q = columns.range.first; q < columns.range.last; ++q) {
      visit(q, share_of(columns.w, columns_of(q, cubic)));
    }
  }
}

// Calls visit(z, p, weight) for each row of dy that the row (d, h) of dx is in.
template <class Visit>
__device__ __forceinline__ void for_each_row(Index d, Index h, float cubic, Visit visit) {
  const Outputs planes = planes_with(d), rows = rows_with(h);
  for (Index z = planes.first; z < planes.last; ++z) {
    const Share plane = share_of(d, planes_of(z, cubic));
    if (!plane.exists) continue;
    for (Index p = rows.first; p < rows.last; ++p) {
      const Share row = share_of(h, rows_of(p, cubic));
      if (row.exists) visit(z, p, plane.weight * row.weight);
    }
  }
}
