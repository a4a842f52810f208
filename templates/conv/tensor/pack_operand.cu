// Copies an operand to where asynchronous copies can take it: packed[outer][planes][rows][columns][groups][PADDED],
// where `inner` elements of a group stand side by side and are filled up with zeros. Any strides.
//
// A thread makes a piece of 16 bytes for PIXELS neighbouring pixels. Neighbouring threads take a few pieces of one
// pixel, which fill the sectors that they are stored in, and then neighbouring pixels if PIXELS_INNER: a load of theirs
// moves whole sectors, too. Else they take all pieces of a pixel, INNER_RUN elements a load.
//
// From the prelude: Element, Index, OUTER, GROUPS, INNER and PADDED (elements of a group), PIECE, PLANES, ROWS,
// COLUMNS, the strides of the operand along all of them, PIXELS, INNER_RUN and PIXELS_INNER
// (contraction/packed_operands.cpp).
#include "lib/strided.cuh"
#include "lib/types.cuh"
#include "lib/vector.cuh"

constexpr int PIECES = GROUPS * PADDED / PIECE;
constexpr int TOGETHER = !PIXELS_INNER ? PIECES : PIECES % 4 == 0 ? 4 : PIECES % 2 == 0 ? 2 : 1;
constexpr long long RUNS = PLANES * ROWS * COLUMNS / PIXELS;  // of pixels

__device__ __forceinline__ void pack(const Element* operand, Element* packed, Index outers) {
  Index index = global_thread<THREADS, Index>();
  int piece = static_cast<int>(take_coordinate(index, TOGETHER));
  const Index pixel = take_coordinate(index, RUNS) * PIXELS;
  piece += static_cast<int>(take_coordinate(index, PIECES / TOGETHER)) * TOGETHER;
  const Index outer = index;
  if (outer >= outers) return;

  const int group = piece / (PADDED / PIECE), inner = piece % (PADDED / PIECE) * PIECE;
  const Element* const from =
      operand + (outer * Index(OUTER_STRIDE) + (group * INNER + inner) * Index(INNER_STRIDE) +
                 strided_offset(pixel, COLUMN_STRIDE, COLUMNS, ROW_STRIDE, ROWS, PLANE_STRIDE, PLANES));
  Vector<Element, PIECE> pieces[PIXELS];
#pragma unroll
  for (int i = 0; i < PIECE; i += INNER_RUN) {
    Vector<Element, PIXELS* INNER_RUN> loaded = zeros<Element, PIXELS * INNER_RUN>();
    if (inner + i < INNER) loaded = load_readonly<PIXELS * INNER_RUN>(from + i * Index(INNER_STRIDE));
#pragma unroll
    for (int j = 0; j < PIXELS; ++j) {
#pragma unroll
      for (int k = 0; k < INNER_RUN; ++k) pieces[j][i + k] = loaded[j * INNER_RUN + k];
    }
  }
  const Index pitch = GROUPS * PADDED;
  Element* const to = packed + (outer * Index(PLANES * ROWS * COLUMNS) + pixel) * pitch + piece * PIECE;
#pragma unroll
  for (int j = 0; j < PIXELS; ++j) store(to + j * pitch, pieces[j]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pack_operand(const Element* __restrict__ operand, Element* __restrict__ packed) {
  pack(operand, packed, OUTER);
}

// The same of as many images as the call has.
extern "C" __global__ void __launch_bounds__(THREADS)
    pack_images(const Element* __restrict__ operand, Element* __restrict__ packed, long long n) {
  pack(operand, packed, static_cast<Index>(n));
}
