// The gradients of a normalisation, rows along any axes and in any layout (lib/row_blocks.cuh).
//
// norm_backward_blocks: the threads of a row find its sums and then its dx, with KEEP from registers, else by reading
// the row again, backwards. Few long rows are split: norm_backward_sums leaves the parts of their sums in the
// workspace, norm_backward_finish merges these in order, norm_backward_apply makes dx. dw and db are sums as well: of
// the same rows where w repeats along these (SAME_ROWS); else norm_backward_sums is compiled once more, with the rows
// that w repeats along (PARAMETERS). Every thread reads all that it needs of an element before it writes it: dx and
// dresidual may be dy, dx may be x. Parameters: norm_backward_blocks.cpp.
//
// workspace: the parts, then the means of each row: [2][ROWS] f32.
#include "lib/norm_gradient.cuh"
#include "lib/row_blocks.cuh"
#include "lib/select.cuh"
#include "lib/store.cuh"

constexpr int UNROLL = KEEP ? KEPT : 2;

constexpr bool WEIGHTED = HAS_W && !SAME_ROWS && !PARAMETERS;  // the sums are of dy w
constexpr bool STORES_PARAMETERS = SAME_ROWS || PARAMETERS;

using GivenDy = Vector<UserKept<TDY>::type, VECTOR>;

// Value of dy that counts. Behind an activation it is a product, which TDY would round once more.
using PassedDy = Select<ACTIVATES, Vector<float, VECTOR>, GivenDy>::type;

// Values that a thread takes of its rows.
struct Taken {
  PassedDy dy;
  Vector<TX, VECTOR> x;
};

// Operands that kernels read, from the first element of a thread's rows on.
struct Operands {
  const TDY* dy;
  const TX* x;
  const TW* w;
  const TB* b;
  const float *mean, *inv_deviation;
  const TY* y;
  const TRESIDUAL* residual;
  ActivationNumbers numbers;
  UserArguments user;

  __device__ __forceinline__ void move_to(const ThreadRows& rows) {
    dy += rows.offset<DY_OUTER_STRIDES, DY_STEP>();
    x += rows.offset<X_OUTER_STRIDES, X_STEP>();
    inv_deviation += rows.offset<INV_DEVIATION_OUTER_STRIDES, INV_DEVIATION_STEP>();
    if constexpr (HAS_W) w += rows.offset<W_OUTER_STRIDES, W_STEP>();
    if constexpr (HAS_B) b += rows.offset<B_OUTER_STRIDES, B_STEP>();
    if constexpr (HAS_RESIDUAL) residual += rows.offset<RESIDUAL_OUTER_STRIDES, RESIDUAL_STEP>();
    if constexpr (HAS_MEAN) mean += rows.offset<MEAN_OUTER_STRIDES, MEAN_STEP>();
    if constexpr (HAS_Y) y += rows.offset<Y_OUTER_STRIDES, Y_STEP>();
  }

  __device__ __forceinline__ Taken take(Index i) const {
    Taken taken;
    const GivenDy given =
        user_kept<false>(load_neighbours<DY_RUN, DY_STEP>(dy + element_offset<DY_ROW_STRIDES>(i)), 0, user);
    taken.x = load_neighbours<X_RUN, X_STEP>(x + element_offset<X_ROW_STRIDES>(i));
    count(i, given, taken);
    return taken;
  }

  // Stores in `taken` the values of `given` that count. A template, so that only what suits the type is compiled.
  template <class T>
  __device__ __forceinline__ void count(Index i, const GivenDy& given, T& taken) const {
    if constexpr (ACTIVATES) {
      pass(i, given, taken);
    } else if constexpr (HAS_Y) {
      const Vector<TY, VECTOR> sign = load_neighbours<Y_RUN, Y_STEP>(y + element_offset<Y_ROW_STRIDES>(i));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        taken.dy[j] = from_float<UserKept<TDY>::type>(passed(to_float(given[j]), to_float(sign[j])));
      }
    } else {
      taken.dy = given;
    }
  }

  // Takes dy back through the activation.
  template <class T>
  __device__ __forceinline__ void pass(Index i, const GivenDy& given, T& taken) const {
    Vector<TW, VECTOR> by;
    Vector<TB, VECTOR> shift;
    Vector<TRESIDUAL, VECTOR> other;
    float xhat[VECTOR];
    xhats(i, taken, inverses(i), xhat);
    if constexpr (HAS_W) by = load_neighbours<W_RUN, W_STEP>(w + element_offset<W_ROW_STRIDES>(i));
    if constexpr (HAS_B) shift = load_neighbours<B_RUN, B_STEP>(b + element_offset<B_ROW_STRIDES>(i));
    if constexpr (HAS_RESIDUAL)
      other = load_neighbours<RESIDUAL_RUN, RESIDUAL_STEP>(residual + element_offset<RESIDUAL_ROW_STRIDES>(i));
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      taken.dy[j] = passed(to_float(given[j]), xhat[j], HAS_W ? to_float(by[j]) : 1.0f,
                           HAS_B ? to_float(shift[j]) : 0.0f, HAS_RESIDUAL ? to_float(other[j]) : 0.0f, numbers);
    }
  }

  __device__ __forceinline__ Vector<float, VECTOR> inverses(Index i) const {
    return load_neighbours<INV_DEVIATION_RUN, INV_DEVIATION_STEP>(inv_deviation +
                                                                  element_offset<INV_DEVIATION_ROW_STRIDES>(i));
  }

  __device__ __forceinline__ void xhats(Index i, const Taken& taken, const Vector<float, VECTOR>& inverses,
                                        float (&xhats)[VECTOR]) const {
    Vector<float, VECTOR> means;
    if constexpr (HAS_MEAN) means = load_neighbours<MEAN_RUN, MEAN_STEP>(mean + element_offset<MEAN_ROW_STRIDES>(i));
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      xhats[j] = normalised(to_float(taken.x[j]), HAS_MEAN ? means[j] : 0.0f, inverses[j]);
    }
  }

  // dy, times w if WITH_W.
  template <bool WITH_W>
  __device__ __forceinline__ void gs(Index i, const Taken& taken, float (&gs)[VECTOR]) const {
    as_floats(taken.dy, gs);
    if constexpr (WITH_W) {
      const Vector<TW, VECTOR> by = load_neighbours<W_RUN, W_STEP>(w + element_offset<W_ROW_STRIDES>(i));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) gs[j] *= to_float(by[j]);
    }
  }

  __device__ __forceinline__ void add(Index i, const Taken& taken, GradientSums (&sums)[SIDE]) const {
    float g[VECTOR], xhat[VECTOR];
    gs<WEIGHTED>(i, taken, g);
    xhats(i, taken, inverses(i), xhat);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sums[ACROSS ? j : 0].add(g[j], xhat[j]);
  }
};

struct Results {
  TDX* dx;
  TDRESIDUAL* dresidual;
  OutputArguments output;
  ResidualScales dresidual_scales;
  Index dx_first = 0;  // offset in dx of the thread's first element; user code asks for offsets from dx's own

  __device__ __forceinline__ void move_to(const ThreadRows& rows) {
    dx_first = rows.offset<DX_OUTER_STRIDES, DX_STEP>();
    if constexpr (HAS_DRESIDUAL) dresidual += rows.offset<DRESIDUAL_OUTER_STRIDES, DRESIDUAL_STEP>();
  }

  __device__ __forceinline__ void store(Index i, const Operands& from, const Taken& taken,
                                        const GradientSums (&means)[SIDE]) const {
    const Vector<float, VECTOR> inverses = from.inverses(i);
    float g[VECTOR], xhat[VECTOR], values[VECTOR];
    from.gs<HAS_W>(i, taken, g);
    from.xhats(i, taken, inverses, xhat);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) values[j] = gradient(g[j], xhat[j], inverses[j], means[ACROSS ? j : 0]);
    if constexpr (HAS_DRESIDUAL) {
      float passed_on[VECTOR];
      as_floats(taken.dy, passed_on);
      store_neighbours<DRESIDUAL_RUN, DRESIDUAL_STEP>(dresidual + element_offset<DRESIDUAL_ROW_STRIDES>(i), passed_on,
                                                      dresidual_scales);
    }
    store_along<DX_RUN, DX_STEP>(dx, dx_first + element_offset<DX_ROW_STRIDES>(i), values, output);
  }
};

// Stores the parts of dw and db that the sums of row `column` of group `outer` give.
__device__ __forceinline__ void store_parameters(Index outer, Index column, const GradientSums& sums, TDW* dw, TDB* db,
                                                 ParameterScales scales) {
  if constexpr (STORES_PARAMETERS && HAS_DW) {
    scales.store(dw + (row_offset<DW_OUTER_STRIDES>(outer) + column * Index(DW_STEP)), sums.words[1]);
  }
  if constexpr (STORES_PARAMETERS && HAS_DB) {
    scales.store(db + (row_offset<DB_OUTER_STRIDES>(outer) + column * Index(DB_STEP)), sums.words[0]);
  }
}

// Means of the sums, for the row's dx.
__device__ __forceinline__ GradientSums means_of(Index outer, Index column, const GradientSums& sums, const TW* w) {
  float by = 1.0f;
  if constexpr (SAME_ROWS && HAS_W) by = to_float(w[row_offset<W_OUTER_STRIDES>(outer) + column * Index(W_STEP)]);
  return sums.means(by, float(ROW));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_backward_blocks(const TDY* dy, const TX* x, const TW* w, const TB* b, const float* mean,
                         const float* inv_deviation, const TY* y, const TRESIDUAL* residual, TDX* dx, TDW* dw, TDB* db,
                         TDRESIDUAL* dresidual, float alpha, float beta, UserArguments user, float parameter_alpha,
                         float parameter_beta, float dresidual_alpha, float dresidual_beta, float slope, float offset,
                         float low, float high, long long n) {
  const ThreadRows rows(n);
  Operands operands = {dy, x, w, b, mean, inv_deviation, y, residual, {slope, offset, low, high}, user};
  operands.move_to(rows);
  Taken kept[KEPT];
  GradientSums sums[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) sums[j] = GradientSums::of_nothing();
  const int steps = KEEP ? KEPT : ceil_div<int>(ROW, LANES * TAKEN);  // that a thread takes of its rows, at the most
#pragma unroll UNROLL
  for (int step = 0; step < steps; ++step) {
    const Index i = (step * LANES + rows.lane) * TAKEN;
    if (!rows.active || i >= ROW) break;
    kept[KEEP ? step : 0] = operands.take(i);
    operands.add(i, kept[KEEP ? step : 0], sums);
  }
  merge_lanes(rows, sums);
  if (!rows.active) return;

  GradientSums means[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) {
    means[j] = means_of(rows.outer, rows.column + j, sums[j], w);
    if (rows.lane == 0)
      store_parameters(rows.outer, rows.column + j, sums[j], dw, db, {parameter_alpha, parameter_beta});
  }
  Results results = {dx, dresidual, {alpha, beta, user}, {dresidual_alpha, dresidual_beta}};
  results.move_to(rows);
#pragma unroll UNROLL
  for (int step = steps - 1; step >= 0; --step) {
    const Index i = (step * LANES + rows.lane) * TAKEN;
    if (i >= ROW) continue;
    if constexpr (!KEEP) kept[0] = operands.take(i);
    results.store(i, operands, kept[KEEP ? step : 0], means);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_backward_sums(const TDY* __restrict__ dy, const TX* __restrict__ x, const TW* __restrict__ w,
                       const TB* __restrict__ b, const float* __restrict__ mean,
                       const float* __restrict__ inv_deviation, const TY* __restrict__ y,
                       const TRESIDUAL* __restrict__ residual, TDW* dw, TDB* db, float* __restrict__ workspace,
                       UserArguments user, float parameter_alpha, float parameter_beta, float slope, float offset,
                       float low, float high, long long n) {
  const ThreadRows rows(n);
  Operands operands = {dy, x, w, b, mean, inv_deviation, y, residual, {slope, offset, low, high}, user};
  operands.move_to(rows);
  GradientSums sums[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) sums[j] = GradientSums::of_nothing();
  if (rows.active) for_each_taken(rows.lane, [&](Index i) { operands.add(i, operands.take(i), sums); });
  merge_lanes(rows, sums);
  if (rows.lane != 0 || !rows.active) return;
#pragma unroll
  for (int j = 0; j < SIDE; ++j) {
    if (SPLITS > 1) {
      store_part(workspace, rows.first() + j, sums[j]);
    } else {
      store_parameters(rows.outer, rows.column + j, sums[j], dw, db, {parameter_alpha, parameter_beta});
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_backward_finish(const TW* w, TDW* dw, TDB* db, float* workspace, float parameter_alpha, float parameter_beta,
                         long long n) {
  const Index row = global_thread<THREADS, Index>() / MERGE_LANES;
  const bool active = row < rows_of_call(n);
  const GradientSums sums = merged_parts<GradientSums>(workspace, active ? row : 0);
  if (!active || threadIdx.x % MERGE_LANES != 0) return;
  store_parameters(row / INNER, row % INNER, sums, dw, db, {parameter_alpha, parameter_beta});
  if constexpr (!PARAMETERS) {
    const GradientSums means = means_of(row / INNER, row % INNER, sums, w);
    behind_parts<GradientSums>(workspace)[row] = means.words[0];
    behind_parts<GradientSums>(workspace)[ROWS + row] = means.words[1];
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_backward_apply(const TDY* dy, const TX* x, const TW* w, const TB* b, const float* mean,
                        const float* inv_deviation, const TY* y, const TRESIDUAL* residual, TDX* dx,
                        TDRESIDUAL* dresidual, const float* workspace, float alpha, float beta, UserArguments user,
                        float dresidual_alpha, float dresidual_beta, float slope, float offset, float low, float high,
                        long long n) {
  const ThreadRows rows(n);
  if (!rows.active) return;
  Operands operands = {dy, x, w, b, mean, inv_deviation, y, residual, {slope, offset, low, high}, user};
  operands.move_to(rows);
  GradientSums means[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) {
    means[j].words[0] = behind_parts<GradientSums>(workspace)[rows.first() + j];
    means[j].words[1] = behind_parts<GradientSums>(workspace)[ROWS + rows.first() + j];
  }
  Results results = {dx, dresidual, {alpha, beta, user}, {dresidual_alpha, dresidual_beta}};
  results.move_to(rows);
  for_each_taken(rows.lane, [&](Index i) { results.store(i, operands, operands.take(i), means); });
}
