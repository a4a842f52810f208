// Elements of x around the positions that a grid gives, and their weights: what kernels of grid_sample and of its
// gradients share. generator/operations/grid_sample.h has the formulas.
//
// From the prelude: MODE, PADDING, ENDS (the enumerations there); AXES, 2 or 3; C; the extents of x (D, H, W) and of y
// (Z, P, Q), D and Z 1 in 2-D; for each operand its type and strides: IMAGE_... of x or dx, SAMPLED_... of y or dy,
// GRID_..., and of the gradient by the grid DGRID_.... N, DYNAMIC_N.
#include "lib/cubic.cuh"
#include "lib/grid.cuh"
#include "lib/strided.cuh"
#include "lib/types.cuh"

enum : int { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC };     // as GridMode
enum : int { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };  // as GridPadding

constexpr int GRID_TAPS = MODE == GRID_NEAREST ? 1 : MODE == GRID_LINEAR ? 2 : 4;
constexpr int PLANE_TAPS = AXES == 3 ? GRID_TAPS : 1;

using Image = SpatialTensor<IMAGE_STRIDE_N, IMAGE_STRIDE_C, IMAGE_STRIDE_D, IMAGE_STRIDE_H, IMAGE_STRIDE_W, N, D, H, W>;
using Sampled =
    SpatialTensor<SAMPLED_STRIDE_N, SAMPLED_STRIDE_C, SAMPLED_STRIDE_Z, SAMPLED_STRIDE_P, SAMPLED_STRIDE_Q, N, Z, P, Q>;

// A position along an axis, and a factor of slopes: 0 where it was moved to an end, -1 where it was mirrored.
struct GridPosition {
  float position, factor;

  // Moves it to the ends of an axis whose last element is `last`; NaN to 0.
  __device__ __forceinline__ void keep_inside(float last) {
    if (!(position > 0.0f)) {
      position = factor = 0.0f;
    } else if (position >= last) {
      position = last, factor = 0.0f;
    }
  }
  // Mirrors it at the ends of an axis of `extent` elements.
  __device__ __forceinline__ void mirror(float extent) {
    const float low = ENDS == GRID_EDGES ? -0.5f : 0.0f, span = ENDS == GRID_EDGES ? extent : extent - 1.0f;
    if (span == 0.0f) {
      position = factor = 0.0f;
      return;
    }
    const float from_low = __fsub_rn(position, low), distance = fabsf(from_low);
    const float rest = fmodf(distance, span), turns = floorf(__fdiv_rn(distance, span));
    if (from_low < 0.0f) factor = -factor;
    if (fmodf(turns, 2.0f) == 0.0f) {
      position = __fadd_rn(rest, low);
    } else {
      position = __fadd_rn(__fsub_rn(span, rest), low);
      factor = -factor;
    }
  }
  __device__ __forceinline__ void pad(float extent) {
    if constexpr (PADDING == GRID_ZEROS) return;
    if constexpr (PADDING == GRID_REFLECTION) mirror(extent);
    keep_inside(extent - 1.0f);
  }
};

// The position in x that a coordinate of the grid names: rounded after each operation, as the reference does it.
__device__ __forceinline__ float grid_position(float coordinate, float extent) {
  const float shifted = __fadd_rn(coordinate, 1.0f);
  if (ENDS == GRID_CENTRES) return __fmul_rn(shifted * 0.5f, extent - 1.0f);
  return __fsub_rn(__fmul_rn(shifted, extent), 1.0f) * 0.5f;
}

// Elements along an axis of which an output is made, and the derivatives of their weights by the coordinate.
template <int TAPS>
struct GridTaps {
  Index places[TAPS];  // -1 outside x, where weights are 0
  float weights[TAPS], slopes[TAPS];

  // Taps of an axis that x does not have.
  __device__ __forceinline__ GridTaps() {
    places[0] = 0;
    weights[0] = 1.0f, slopes[0] = 0.0f;
  }
  __device__ __forceinline__ GridTaps(float coordinate, Index elements) {
    const float extent = static_cast<float>(elements);
    GridPosition at = {grid_position(coordinate, extent), 1.0f};
    if constexpr (MODE != GRID_CUBIC) at.pad(extent);
    const float before = floorf(at.position), t = at.position - before, rest = 1.0f - t;
    const float scale = at.factor * (ENDS == GRID_EDGES ? extent : extent - 1.0f) * 0.5f;
    if constexpr (TAPS == 1) {
      put(0, rintf(at.position), extent, 1.0f, 0.0f);
    } else if constexpr (TAPS == 2) {
      put(0, before, extent, rest, -scale);
      put(1, before + 1.0f, extent, t, scale);
    } else {
      constexpr float a = -0.75f;
      put(0, before - 1.0f, extent, cubic_outer(t, rest, a), scale * (a * rest * (rest - 2.0f * t)));
      put(1, before, extent, cubic_inner(t, a), scale * inner_slope(t, a));
      put(2, before + 1.0f, extent, cubic_inner(rest, a), -scale * inner_slope(rest, a));
      put(3, before + 2.0f, extent, cubic_outer(rest, t, a), scale * (a * t * (2.0f * rest - t)));
    }
  }
  __device__ __forceinline__ bool holds(int i) const { return places[i] >= 0; }

 private:
  // Slope of cubic_inner().
  __device__ __forceinline__ static float inner_slope(float d, float a) {
    return d * (3.0f * (a + 2.0f) * d - 2.0f * (a + 3.0f));
  }
  __device__ __forceinline__ void put(int i, float element, float extent, float weight, float slope) {
    if constexpr (MODE == GRID_CUBIC) {
      GridPosition at = {element, 1.0f};
      at.pad(extent);
      element = at.position;
    }
    places[i] = element >= 0.0f && element < extent ? static_cast<Index>(element) : Index(-1);
    weights[i] = places[i] >= 0 ? weight : 0.0f;  // of a position that is NaN it were NaN
    slopes[i] = slope;
  }
};

// Elements of x around the position of a pixel.
struct GridSurroundings {
  GridTaps<PLANE_TAPS> planes;
  GridTaps<GRID_TAPS> rows, columns;

  // `coordinates`: of the pixel in the grid.
  __device__ __forceinline__ explicit GridSurroundings(const TGRID* coordinates)
      : planes(planes_at(coordinates)),
        rows(to_float(coordinates[Index(GRID_STRIDE_E)]), Index(H)),
        columns(to_float(coordinates[0]), Index(W)) {}

  // Calls use(offset, plane, row, column) for each element, with its offset in channel 0 of an image and the numbers of
  // its taps.
  template <class Use>
  __device__ __forceinline__ void for_each(const Use& use) const {
#pragma unroll
    for (int i = 0; i < PLANE_TAPS; ++i) {
#pragma unroll
      for (int j = 0; j < GRID_TAPS; ++j) {
#pragma unroll
        for (int k = 0; k < GRID_TAPS; ++k) {
          if (!planes.holds(i) || !rows.holds(j) || !columns.holds(k)) continue;
          use(Image::at(0, 0, planes.places[i], rows.places[j], columns.places[k]), i, j, k);
        }
      }
    }
  }
  __device__ __forceinline__ float weight(int i, int j, int k) const {
    return planes.weights[i] * rows.weights[j] * columns.weights[k];
  }
  // Derivatives of a channel's output by the coordinates, along w first. Linear ones are of differences of neighbours,
  // which may be small where the elements are not.
  template <class T>
  __device__ __forceinline__ void derive(const T* channel, float (&derivatives)[AXES]) const {
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) derivatives[axis] = 0.0f;
    if constexpr (MODE == GRID_LINEAR) {
      float e[PLANE_TAPS][2][2] = {};
      for_each([&](Index offset, int i, int j, int k) { e[i][j][k] = to_float(channel[offset]); });
#pragma unroll
      for (int i = 0; i < PLANE_TAPS; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          derivatives[0] += planes.weights[i] * rows.weights[j] * (e[i][j][1] - e[i][j][0]);
          derivatives[1] += planes.weights[i] * columns.weights[j] * (e[i][1][j] - e[i][0][j]);
          if constexpr (AXES == 3) derivatives[2] += rows.weights[i] * columns.weights[j] * (e[1][i][j] - e[0][i][j]);
        }
      }
      derivatives[0] *= columns.slopes[1], derivatives[1] *= rows.slopes[1];
      if constexpr (AXES == 3) derivatives[2] *= planes.slopes[1];
    } else if constexpr (MODE == GRID_CUBIC) {
      for_each([&](Index offset, int, int j, int k) {
        const float element = to_float(channel[offset]);
        derivatives[0] += element * (rows.weights[j] * columns.slopes[k]);
        derivatives[1] += element * (rows.slopes[j] * columns.weights[k]);
      });
    }
  }

 private:
  __device__ __forceinline__ static GridTaps<PLANE_TAPS> planes_at(const TGRID* coordinates) {
    if constexpr (AXES == 2) {
      return GridTaps<PLANE_TAPS>();
    } else {
      return GridTaps<PLANE_TAPS>(to_float(coordinates[2 * Index(GRID_STRIDE_E)]), Index(D));
    }
  }
};
