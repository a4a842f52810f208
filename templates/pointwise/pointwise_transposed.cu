// y = f(a, b, c), element by element, where some inputs lie across y: NCHW to NHWC, say.
//
// Neighbours in y are neighbours along dimension 0, those in the inputs that CROSSING marks along dimension CROSS. A
// block takes a TILE x TILE square of these two: it reads the crossing inputs along CROSS into shared memory, and then
// everything along dimension 0, so that both sides move whole sectors. Parameters: pointwise_transposed.cpp.
#include "lib/pointwise.cuh"

constexpr int STEPS = TILE / ROWS;  // rows of the square that a thread takes

static_assert(TILE % ROWS == 0, "a thread takes whole rows");
static_assert(TILE == 32, "a warp takes a row");

// One square of an input; rows are an odd number of words apart, so that a column lies in different banks.
template <class T>
struct Square {
  T data[TILE][TILE + 4 / sizeof(T)];
};

// Moves to `index` along all dimensions but 0 and CROSS.
template <int DIMENSION = 1>
__device__ __forceinline__ void move_to_others(Index index, Place& place) {
  if constexpr (DIMENSION == CROSS) {
    move_to_others<DIMENSION + 1>(index, place);
  } else if constexpr (DIMENSION < DIMENSIONS) {
    constexpr bool LAST = DIMENSION == DIMENSIONS - 1 || (DIMENSION == DIMENSIONS - 2 && CROSS == DIMENSIONS - 1);
    if constexpr (LAST) {
      move_along<DIMENSION>(index, place);
    } else {
      move_along<DIMENSION>(take_coordinate(index, EXTENTS[DIMENSION]), place);
      move_to_others<DIMENSION + 1>(index, place);
    }
  }
}

template <int OPERAND, class T>
__device__ __forceinline__ void stage(const T* input, Index offset, int row, int column, T& target) {
  if constexpr (CROSSING[OPERAND] != 0) {
    target = input[offset + row * Index(stride_of(OPERAND, 0)) + column * Index(stride_of(OPERAND, CROSS))];
  }
}

template <int OPERAND, class T>
__device__ __forceinline__ T element_of(const T* input, Index offset, const T& staged) {
  if constexpr (CROSSING[OPERAND] != 0) return staged;
  return input[offset];
}

extern "C" __global__ void __launch_bounds__(TILE* ROWS)
    pointwise_transposed(const TA* a, const TB* b, const TC* c, TY* y, float alpha, float beta, UserArguments user,
                         float n0, float n1, float n2, float n3, unsigned long long i0, unsigned long long i1,
                         long long) {
  __shared__ Square<TA> square_a;
  __shared__ Square<TB> square_b;
  __shared__ Square<TC> square_c;
  const PointwiseArguments arguments = {a, b, c, y, alpha, beta, user, {{n0, n1, n2, n3}, {i0, i1}}};
  const int lane = static_cast<int>(threadIdx.x) % TILE, row = static_cast<int>(threadIdx.x) / TILE;
  const Index extent_0 = Index(EXTENTS[0]), extent_cross = Index(EXTENTS[CROSS]);
  Index block = static_cast<Index>(blockIdx.x);
  const Index first_0 = take_coordinate(block, ceil_div<Index>(extent_0, TILE)) * TILE;
  const Index first_cross = take_coordinate(block, ceil_div<Index>(extent_cross, TILE)) * TILE;
  const int rows = static_cast<int>(smaller<Index>(TILE, extent_0 - first_0));             // along dimension 0
  const int columns = static_cast<int>(smaller<Index>(TILE, extent_cross - first_cross));  // along CROSS
  Place corner = {};
  move_along<0>(first_0, corner);
  move_along<CROSS>(first_cross, corner);
  move_to_others(block, corner);

#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    const int at = row + i * ROWS;
    if (at >= rows || lane >= columns) continue;
    if constexpr (INPUTS > 0) stage<0>(a, corner.offsets[0], at, lane, square_a.data[at][lane]);
    if constexpr (INPUTS > 1) stage<1>(b, corner.offsets[1], at, lane, square_b.data[at][lane]);
    if constexpr (INPUTS > 2) stage<2>(c, corner.offsets[2], at, lane, square_c.data[at][lane]);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    const int at = row + i * ROWS;
    if (at >= columns || lane >= rows) continue;
    Place place = corner;
    move_along<0>(lane, place);
    move_along<CROSS>(at, place);
    Inputs<1> inputs;
    if constexpr (INPUTS > 0)
      inputs.a[0] = user_kept(element_of<0>(a, place.offsets[0], square_a.data[lane][at]), 0, user);
    if constexpr (INPUTS > 1) inputs.b[0] = element_of<1>(b, place.offsets[1], square_b.data[lane][at]);
    if constexpr (INPUTS > 2) inputs.c[0] = element_of<2>(c, place.offsets[2], square_c.data[lane][at]);
    store_results(inputs, place.offsets[RESULT], arguments);
  }
}
