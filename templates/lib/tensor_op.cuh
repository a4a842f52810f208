// Function of tensor_op, from one element of each input; kiln/generator/operations/tensor_ops.h has the modes.
#include "lib/math.cuh"

enum : int {  // as TensorOpMode
  TENSOR_OP_ADD,
  TENSOR_OP_SUB,
  TENSOR_OP_MUL,
  TENSOR_OP_DIV,
  TENSOR_OP_MIN,
  TENSOR_OP_MAX,
  TENSOR_OP_POW,
  TENSOR_OP_EQ,
  TENSOR_OP_NE,
  TENSOR_OP_LT,
  TENSOR_OP_LE,
  TENSOR_OP_GT,
  TENSOR_OP_GE,
  TENSOR_OP_SQRT,
  TENSOR_OP_EXP,
  TENSOR_OP_LOG,
  TENSOR_OP_ABS,
  TENSOR_OP_NEG,
  TENSOR_OP_NOT,
  TENSOR_OP_SELECT,
};

__device__ __forceinline__ float truth(bool holds) {
  return holds ? 1.0f : 0.0f;
}

template <int MODE>
__device__ __forceinline__ float tensor_op(float a, float b, float c) {
  if constexpr (MODE == TENSOR_OP_ADD) return a + b;
  if constexpr (MODE == TENSOR_OP_SUB) return a - b;
  if constexpr (MODE == TENSOR_OP_MUL) return a * b;
  if constexpr (MODE == TENSOR_OP_DIV) return a / b;
  if constexpr (MODE == TENSOR_OP_MIN) return -max_nan(-a, -b);
  if constexpr (MODE == TENSOR_OP_MAX) return max_nan(a, b);
  if constexpr (MODE == TENSOR_OP_POW) return powf(a, b);
  if constexpr (MODE == TENSOR_OP_EQ) return truth(a == b);
  if constexpr (MODE == TENSOR_OP_NE) return truth(a != b);
  if constexpr (MODE == TENSOR_OP_LT) return truth(a < b);
  if constexpr (MODE == TENSOR_OP_LE) return truth(a <= b);
  if constexpr (MODE == TENSOR_OP_GT) return truth(a > b);
  if constexpr (MODE == TENSOR_OP_GE) return truth(a >= b);
  if constexpr (MODE == TENSOR_OP_SQRT) return sqrtf(a);
  if constexpr (MODE == TENSOR_OP_EXP) return expf(a);
  if constexpr (MODE == TENSOR_OP_LOG) return logf(a);
  if constexpr (MODE == TENSOR_OP_ABS) return fabsf(a);
  if constexpr (MODE == TENSOR_OP_NEG) return -a;
  if constexpr (MODE == TENSOR_OP_NOT) return truth(a == 0.0f);
  return a != 0.0f ? b : c;  // TENSOR_OP_SELECT
}
