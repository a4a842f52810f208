// A block's tile of elements and the shared memory around it: what the tiled kernels of local normalisations share.
//
// The dimensions of a tile are up to three AXES that the window runs along, innermost first, and a free one, whose
// elements are taken in groups of VECTOR neighbours where it is the innermost; the block number says which tile, and
// which of the remaining dimensions. Sums are made along one axis after the other, so a window of n x n costs 2 n
// additions.
//
// From the prelude: AXES, AXIS_EXTENTS, AXIS_TILES, FREE_TILE, FREE_INNER (whether the free dimension is further in
// than the axes), THREADS, X_AXIS_STRIDES of each operand, and what lib/rows.cuh asks for, with the free dimension as
// INNER, which VECTOR divides.
#include "lib/local_norm.cuh"
#include "lib/rows.cuh"
#include "lib/store.cuh"

static_assert(FREE_TILE % VECTOR == 0, "a group must not cross the end of a tile");
static_assert(FREE_INNER || VECTOR == 1, "neighbours in shared memory are neighbours in the free dimension");

constexpr int REACH = SIZE - 1;  // elements that a window has beside its centre
constexpr int GROUPS = FREE_TILE / VECTOR;

using Values = float[VECTOR];

// Where a group stands. In a region `free` counts groups, in the tensor elements.
struct Cell {
  int at[3];
  int free;
};

// The tile and, along each axis, so many more elements around it.
template <int H0, int H1, int H2>
struct Region {
  static constexpr int E0 = int(AXIS_TILES[0]) + H0, E1 = int(AXIS_TILES[1]) + H1, E2 = int(AXIS_TILES[2]) + H2;
  static constexpr int COUNT = E0 * E1 * E2 * GROUPS;

  // The region without the reach of windows along AXIS.
  template <int AXIS>
  using Less = Region<H0 - (AXIS == 0 ? REACH : 0), H1 - (AXIS == 1 ? REACH : 0), H2 - (AXIS == 2 ? REACH : 0)>;

  template <int AXIS>
  static constexpr int STEP = (FREE_INNER ? GROUPS : 1) * (AXIS > 0 ? E0 : 1) * (AXIS > 1 ? E1 : 1);

  __device__ __forceinline__ static int index(const Cell& cell) {
    const int along = (cell.at[2] * E1 + cell.at[1]) * E0 + cell.at[0];
    return FREE_INNER ? along * GROUPS + cell.free : cell.free * (E0 * E1 * E2) + along;
  }
  __device__ __forceinline__ static Cell cell(int index) {
    Cell cell;
    if constexpr (FREE_INNER) cell.free = take_coordinate(index, GROUPS);
    cell.at[0] = take_coordinate(index, E0);
    cell.at[1] = take_coordinate(index, E1);
    cell.at[2] = take_coordinate(index, E2);
    if constexpr (!FREE_INNER) cell.free = index;
    return cell;
  }
};

// The region that reaches so many windows beyond the tile.
template <int WINDOWS>
using Around =
    Region<(AXES > 0 ? WINDOWS * REACH : 0), (AXES > 1 ? WINDOWS * REACH : 0), (AXES > 2 ? WINDOWS * REACH : 0)>;
using Tile = Around<0>;

// Which part of the tensors this block has.
struct Block {
  int first[3];  // of the tile, along the axes
  int free;
  Index outer;

  __device__ __forceinline__ Block() {
    Index number = static_cast<Index>(blockIdx.x);
    free = static_cast<int>(take_coordinate(number, ceil_div<long long>(INNER, FREE_TILE))) * FREE_TILE;
    take_axis<0>(number);
    take_axis<1>(number);
    take_axis<2>(number);
    outer = number;
  }

  template <int AXIS>
  __device__ __forceinline__ void take_axis(Index& number) {
    constexpr int TILE = AXIS_TILES[AXIS];
    first[AXIS] = static_cast<int>(take_coordinate(number, ceil_div<long long>(AXIS_EXTENTS[AXIS], TILE))) * TILE;
  }

  // The elements that `cell` of a region is, which begins `before` elements ahead of the tile along each axis.
  __device__ __forceinline__ Cell elements(const Cell& cell, int before) const {
    Cell elements;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      elements.at[axis] = first[axis] + cell.at[axis] - (axis < AXES ? before : 0);
    }
    elements.free = free + cell.free * VECTOR;
    return elements;
  }
};

// Whether 0 <= at < EXTENTS along all three.
template <const long long (&EXTENTS)[3]>
__device__ __forceinline__ bool is_within(const int (&at)[3]) {
  const int e0 = EXTENTS[0], e1 = EXTENTS[1], e2 = EXTENTS[2];
  return at[0] >= 0 && at[0] < e0 && at[1] >= 0 && at[1] < e1 && at[2] >= 0 && at[2] < e2;
}

__device__ __forceinline__ bool is_inside(const Cell& elements) {
  return elements.free < INNER && is_within<AXIS_EXTENTS>(elements.at);
}

// The offset of a group from the first of its outer dimensions.
template <const long long (&AXIS_STRIDES)[3], const auto& FREE_STRIDE>
__device__ __forceinline__ Index offset_of(const Cell& elements) {
  return elements.at[0] * Index(AXIS_STRIDES[0]) + elements.at[1] * Index(AXIS_STRIDES[1]) +
         elements.at[2] * Index(AXIS_STRIDES[2]) + elements.free * Index(FREE_STRIDE);
}

// x and its means, of this block.
template <class Enter>
struct Inputs {
  const TX* x;
  const TMEANS* means;
  Enter enter;

  __device__ __forceinline__ Inputs(const TX* x, const TMEANS* means, const Block& block, const Enter& enter)
      : x(x), means(means), enter(enter) {
    this->x += row_offset<X_OUTER_STRIDES>(block.outer);
    if constexpr (HAS_MEANS) this->means += row_offset<MEANS_OUTER_STRIDES>(block.outer);
  }
  __device__ __forceinline__ void load_x(const Cell& elements, Values& values) const {
    as_floats(enter(load_neighbours<X_RUN, X_STEP>(x + offset_of<X_AXIS_STRIDES, X_STEP>(elements))), values);
  }
  // x - means.
  __device__ __forceinline__ void load_distances(const Cell& elements, Values& values) const {
    load_x(elements, values);
    if constexpr (HAS_MEANS) {
      const TMEANS* const first = means + offset_of<MEANS_AXIS_STRIDES, MEANS_STEP>(elements);
      const Vector<TMEANS, VECTOR> subtracted = load_neighbours<MEANS_RUN, MEANS_STEP>(first);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) values[j] -= to_float(subtracted[j]);
    }
  }
};

// The squares of a region that begins `before` elements ahead of the tile; 0 outside the tensor.
template <class In, class Enter>
__device__ __forceinline__ void load_squares(const Inputs<Enter>& inputs, const Block& block, int before,
                                             Values* squares) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < In::COUNT; i += THREADS) {
    const Cell elements = block.elements(In::cell(i), before);
    Values distances = {};
    if (is_inside(elements)) inputs.load_distances(elements, distances);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) squares[i][j] = distances[j] * distances[j];
  }
  __syncthreads();
}

// Sums over windows along the axes from AXIS on, to and fro between two buffers. Returns the one that has the result.
template <class In, int AXIS = 0>
__device__ __forceinline__ Values* sum_windows(Values* from, Values* to) {
  if constexpr (AXIS == AXES) {
    return from;
  } else {
    using Out = typename In::template Less<AXIS>;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < Out::COUNT; i += THREADS) {
      const Values* const first = from + In::index(Out::cell(i));
      Values sum = {};
#pragma unroll(SIZE < 16 ? SIZE : 8)
      for (int k = 0; k < SIZE; ++k) {
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) sum[j] += first[k * In::template STEP<AXIS>][j];
      }
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) to[i][j] = sum[j];
    }
    __syncthreads();
    return sum_windows<Out, AXIS + 1>(to, from);
  }
}

// Groups of the buffer that the first sums of a region go to; a larger one is not needed.
template <class In>
constexpr int SUMMED = AXES > 0 ? In::template Less<0>::COUNT : 1;
