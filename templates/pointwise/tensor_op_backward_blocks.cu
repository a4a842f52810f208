// The gradient of a tensor_op by an input that repeats: sums over rows along any axes and in any layout
// (lib/row_blocks.cuh).
//
// Few long rows are split: the first kernel leaves the parts of each row in the workspace, the second merges them,
// always in the same order. Parameters: tensor_op_backward_blocks.cpp.
#include "lib/row_blocks.cuh"
#include "lib/store.cuh"
#include "lib/tensor_op_gradient.cuh"

struct GradientSum {
  static constexpr int WORDS = 1;
  float words[WORDS];

  __device__ __forceinline__ static GradientSum merged(const GradientSum& a, const GradientSum& b) {
    return {{a.words[0] + b.words[0]}};
  }
};

// Stores the gradient of row `column` of group `outer`.
__device__ __forceinline__ void store_row(TDX* dx, Index outer, Index column, const GradientSum& sum,
                                          const OutputArguments& output) {
  store_result(dx, row_offset<DX_OUTER_STRIDES>(outer) + column * Index(DX_STEP), sum.words[0], 0, output);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_op_backward_blocks(const TDY* dy, const TA* a, const TB* b, TDX* dx, float* parts, float alpha, float beta,
                              UserArguments user, long long n) {
  const ThreadRows rows(n);
  dy += rows.offset<DY_OUTER_STRIDES, DY_STEP>();
  a += rows.offset<A_OUTER_STRIDES, A_STEP>();
  b += rows.offset<B_OUTER_STRIDES, B_STEP>();
  GradientSum sums[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) sums[j].words[0] = 0.0f;
  if (rows.active) {
    for_each_taken(rows.lane, [&](Index i) {
      const Vector<TDY, VECTOR> of_dy = load_neighbours<DY_RUN, DY_STEP>(dy + element_offset<DY_ROW_STRIDES>(i));
      Vector<TA, VECTOR> of_a = zeros<TA, VECTOR>();
      Vector<TB, VECTOR> of_b = zeros<TB, VECTOR>();
      if constexpr (gradient_reads_a<GRADIENT>()) {
        of_a = load_neighbours<A_RUN, A_STEP>(a + element_offset<A_ROW_STRIDES>(i));
      }
      if constexpr (gradient_reads_b<GRADIENT>()) {
        of_b = load_neighbours<B_RUN, B_STEP>(b + element_offset<B_ROW_STRIDES>(i));
      }
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        sums[ACROSS ? j : 0].words[0] +=
            tensor_op_gradient<GRADIENT>(to_float(of_dy[j]), to_float(of_a[j]), to_float(of_b[j]));
      }
    });
  }
  merge_lanes(rows, sums);
  if (rows.lane != 0 || !rows.active) return;
#pragma unroll
  for (int j = 0; j < SIDE; ++j) {
    if (SPLITS > 1) {
      store_part(parts, rows.first() + j, sums[j]);
    } else {
      store_row(dx, rows.outer, rows.column + j, sums[j], {alpha, beta, user});
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_op_backward_blocks_merge(const float* parts, TDX* dx, float alpha, float beta, UserArguments user,
                                    long long n) {
  const Index row = global_thread<THREADS, Index>() / MERGE_LANES;
  const bool active = row < rows_of_call(n);
  const GradientSum sum = merged_parts<GradientSum>(parts, active ? row : 0);
  if (!active || threadIdx.x % MERGE_LANES != 0) return;
  store_row(dx, row / INNER, row % INNER, sum, {alpha, beta, user});
}
