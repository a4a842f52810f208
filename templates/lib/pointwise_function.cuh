// Function of an element-wise operation, from one element of each input: chosen by FUNCTION and MODE of the prelude.
#include "lib/activation.cuh"
#include "lib/dropout.cuh"
#include "lib/tensor_op.cuh"
#include "lib/tensor_op_gradient.cuh"

enum : int {  // as PointwiseFunction of templates/pointwise/pointwise_problem.h
  FUNCTION_ACTIVATION,
  FUNCTION_ACTIVATION_GRADIENT,
  FUNCTION_ACTIVATION_GRADIENT_FROM_Y,
  FUNCTION_TRANSFORM,
  FUNCTION_SET,
  FUNCTION_TENSOR_OP,
  FUNCTION_DROPOUT,
  FUNCTION_TENSOR_OP_GRADIENT,
};

// Operation::scalars() and Operation::integers() of the call.
struct PointwiseNumbers {
  float values[4];
  unsigned long long integers[2];
};

__device__ __forceinline__ float pointwise_function(float a, float b, float c, const PointwiseNumbers& numbers) {
  const float(&n)[4] = numbers.values;
  if constexpr (FUNCTION == FUNCTION_ACTIVATION) return activated<MODE>(a, n[0], n[1], n[2], n[3]);
  if constexpr (FUNCTION == FUNCTION_ACTIVATION_GRADIENT) {
    return activation_gradient<MODE>(activation_slope<MODE>(b, n[0], n[1], n[2], n[3]), a);  // a: dy
  }
  if constexpr (FUNCTION == FUNCTION_ACTIVATION_GRADIENT_FROM_Y) {
    return activation_gradient<MODE>(activation_slope_from_y<MODE>(b, n[0], n[3]), a);
  }
  if constexpr (FUNCTION == FUNCTION_TRANSFORM) return a;
  if constexpr (FUNCTION == FUNCTION_SET) return n[0];
  if constexpr (FUNCTION == FUNCTION_TENSOR_OP_GRADIENT) {  // a: dy, behind it what is read
    constexpr bool READS_A = gradient_reads_a<MODE>();
    return tensor_op_gradient<MODE>(a, READS_A ? b : 0.0f, READS_A ? c : b);
  }
  return tensor_op<MODE>(a, b, c);  // FUNCTION_TENSOR_OP
}
