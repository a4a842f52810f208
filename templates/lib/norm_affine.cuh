// A normalisation of a row as x scale + shift.
//
// From the prelude, besides what lib/row_moments.cuh has: HAS_W and HAS_B: which of these operands there are.
#include "lib/row_moments.cuh"

struct Affine {
  float scale, shift;
};

// Factor and summand for the elements of a row that have these w and b. Without a mean (RMS) that is 0, or NaN.
__device__ __forceinline__ Affine affine_of(const RowStatistics& row, float w, float b) {
  const float scale = HAS_W ? w * row.inv_deviation : row.inv_deviation;
  return {scale, fmaf(-row.mean, scale, b)};
}
