// Normalisation by the sum of squares in a window: s = k + alpha / WINDOW * sum of squares, and powers of s.
//
// From the prelude: SIZE, the window's extent along each axis, WINDOW, that to the power of the axes' number, ALPHA and
// BETA; of gradients also DMEANS_ALPHA and DMEANS_BETA.
#include "lib/blend.cuh"
#include "lib/index.cuh"
#include "lib/user_code.cuh"

// A window goes from BEHIND elements before its centre to AHEAD after it.
constexpr int BEHIND = (SIZE - 1) / 2;
constexpr int AHEAD = SIZE / 2;

// How kernels take an operand's elements: as they are stored, or through the user's prologue, which is on x in the
// forward and on dy in the gradient.
struct AsStored {
  template <class T>
  __device__ __forceinline__ T operator()(const T& elements) const {
    return elements;
  }
};
struct Entered {
  UserArguments user;

  template <class T>
  __device__ __forceinline__ typename UserKept<T>::type operator()(T element) const {
    return user_kept(element, 0, user);
  }
  template <class T, int COUNT>
  __device__ __forceinline__ Vector<typename UserKept<T>::type, COUNT> operator()(const Vector<T, COUNT>& run) const {
    return user_kept<false>(run, 0, user);
  }
};

// lrn_alpha, lrn_beta and lrn_k of the call.
struct LocalNormNumbers {
  float alpha, beta, k;

  __device__ __forceinline__ float scale() const { return alpha * (1.0f / float(WINDOW)); }
  // The logarithm to the base 2 of s, from the sum of squares.
  __device__ __forceinline__ float logarithm(float squares) const {
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(k + scale() * squares));
    return result;
  }
};

// s to the power of -exponent.
__device__ __forceinline__ float inverse_power(float logarithm, float exponent) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(-exponent * logarithm));
  return result;
}

// Term that an element adds to the gradients of those in its window.
__device__ __forceinline__ float gradient_term(float x, float dy, float logarithm, const LocalNormNumbers& numbers) {
  return dy * (x * inverse_power(logarithm, numbers.beta + 1.0f));
}

// The gradient through the sums: `distance` is x - means, `terms` the sum of gradient_term().
__device__ __forceinline__ float gradient_through_sums(float distance, float terms, const LocalNormNumbers& numbers) {
  return -2.0f * numbers.scale() * numbers.beta * distance * terms;
}
