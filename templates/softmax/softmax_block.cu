// Softmax or log-softmax of rows in any layout, a block a row, which stays on chip between its one read and its one
// write.
//
// The row is kept in registers (KEEP_SHARED: in shared memory) as it is stored, or as the user's prologue makes it,
// each thread what it loaded itself, so that only the two reductions need the block to meet. Parameters:
// softmax_block.cpp.
#include "lib/index.cuh"
#include "lib/reduce.cuh"
#include "lib/softmax.cuh"
#include "lib/softmax_rows.cuh"

constexpr int STEPS = ceil_div<int>(ROW, THREADS* VECTOR);  // pieces of a thread
constexpr int UNROLL = KEEP_SHARED ? smaller(STEPS, 4) : STEPS;

static_assert(ROW % VECTOR == 0, "a vector must not cross the end of a row");

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_block(const TX* x, TY* y, float alpha, float beta, UserArguments user, long long) {
  extern __shared__ uint4 shared_row[];
  __shared__ float scratch[32];
  KeptX* const shared = reinterpret_cast<KeptX*>(shared_row);
  Elements registers[KEEP_SHARED ? 1 : STEPS];
  const int first = static_cast<int>(threadIdx.x) * VECTOR;
  x += x_row_offset(static_cast<Index>(blockIdx.x));
  const Index y_row = y_row_offset(static_cast<Index>(blockIdx.x));
  float elements[VECTOR];

  float maximum = -infinity();
#pragma unroll UNROLL
  for (int step = 0; step < STEPS; ++step) {
    const int i = step * THREADS * VECTOR + first;
    if (i >= ROW) break;
    const Elements piece = load_elements(x + i * Index(X_STEP), user);
    if constexpr (KEEP_SHARED) {
      store(shared + i, piece);
    } else {
      registers[step] = piece;
    }
    as_floats(piece, elements);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) maximum = fmaxf(maximum, elements[j]);
  }
  maximum = block_reduce<THREADS>(maximum, scratch, Maximum());

  float sum = 0.0f;
#pragma unroll UNROLL
  for (int step = 0; step < STEPS; ++step) {
    const int i = step * THREADS * VECTOR + first;
    if (i >= ROW) break;
    as_floats(KEEP_SHARED ? load<VECTOR>(shared + i) : registers[KEEP_SHARED ? 0 : step], elements);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sum += quick_exp(elements[j] - maximum);
  }
  sum = block_reduce<THREADS>(sum, scratch, Sum());

  const RowNormaliser<LOG> normalised(maximum, sum);
#pragma unroll UNROLL
  for (int step = 0; step < STEPS; ++step) {
    const int i = step * THREADS * VECTOR + first;
    if (i >= ROW) break;
    as_floats(KEEP_SHARED ? load<VECTOR>(shared + i) : registers[KEEP_SHARED ? 0 : step], elements);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) elements[j] = normalised(elements[j]);
    store_along<Y_RUN, Y_STEP>(y, y_row + i * Index(Y_STEP), elements, {alpha, beta, user});
  }
}
