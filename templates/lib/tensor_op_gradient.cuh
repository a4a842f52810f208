// Gradient of a tensor_op of one element; kiln/generator/operations/tensor_op_backward.h has the formulas.
//
// GRADIENT: the mode of tensor_op, three times, and the number of the input (a, b, c).
#include "lib/math.cuh"
#include "lib/tensor_op.cuh"

template <int GRADIENT>
constexpr bool GRADIENT_BY_A = GRADIENT % 3 == 0;

// Whether the gradient reads a, and b.
template <int GRADIENT>
__host__ __device__ constexpr bool gradient_reads_a() {
  constexpr int MODE = GRADIENT / 3;
  if (MODE == TENSOR_OP_ADD || MODE == TENSOR_OP_SUB || MODE == TENSOR_OP_NEG) return false;
  return (MODE != TENSOR_OP_MUL && MODE != TENSOR_OP_DIV) || !GRADIENT_BY_A<GRADIENT>;
}
template <int GRADIENT>
__host__ __device__ constexpr bool gradient_reads_b() {
  constexpr int MODE = GRADIENT / 3;
  return (MODE == TENSOR_OP_MUL && GRADIENT_BY_A<GRADIENT>) || MODE == TENSOR_OP_DIV || MODE == TENSOR_OP_MIN ||
         MODE == TENSOR_OP_MAX || MODE == TENSOR_OP_POW;
}

template <int GRADIENT>
__device__ __forceinline__ float tensor_op_gradient(float dy, float a, float b) {
  constexpr int MODE = GRADIENT / 3;
  constexpr bool BY_A = GRADIENT_BY_A<GRADIENT>;
  if constexpr (MODE == TENSOR_OP_SUB) return BY_A ? dy : -dy;
  if constexpr (MODE == TENSOR_OP_NEG) return -dy;
  if constexpr (MODE == TENSOR_OP_MUL) return dy * (BY_A ? b : a);
  if constexpr (MODE == TENSOR_OP_DIV) return BY_A ? dy / b : -dy * (a / b / b);
  if constexpr (MODE == TENSOR_OP_MIN || MODE == TENSOR_OP_MAX) {
    const bool is_other = (MODE == TENSOR_OP_MIN) == BY_A ? a > b : a < b;
    return is_other ? 0.0f : a == b ? 0.5f * dy : dy;
  }
  if constexpr (MODE == TENSOR_OP_POW && BY_A) return b == 0.0f ? 0.0f : dy * (b * powf(a, b - 1.0f));
  if constexpr (MODE == TENSOR_OP_POW) return a == 0.0f && b >= 0.0f ? 0.0f : dy * (powf(a, b) * logf(a));
  if constexpr (MODE == TENSOR_OP_SQRT) return dy * (0.5f / sqrtf(a));
  if constexpr (MODE == TENSOR_OP_EXP) return dy * expf(a);
  if constexpr (MODE == TENSOR_OP_LOG) return dy / a;
  if constexpr (MODE == TENSOR_OP_ABS) return dy * (a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a);
  if constexpr (MODE == TENSOR_OP_SELECT) return (a != 0.0f) == (GRADIENT % 3 == 1) ? dy : 0.0f;
  return dy;  // TENSOR_OP_ADD
}
