// Reduction of the elements of a row: kiln/generator/operations/reduce.h has the modes.
//
// From the prelude: MODE, WITH_INDICES.
#include "lib/math.cuh"
#include "lib/reduce_modes.cuh"

constexpr int NOWHERE = 0x7fffffff;  // the position of what no element gave

// A value of some elements of a row and, WITH_INDICES, the position of the one that it is.
struct Reduction {
  static constexpr int WORDS = WITH_INDICES ? 2 : 1;
  float words[WORDS];

  __device__ __forceinline__ static Reduction of_nothing() {
    Reduction nothing;
    nothing.words[0] = MODE == REDUCE_MUL || MODE == REDUCE_MUL_NO_ZEROS ? 1.0f
                       : MODE == REDUCE_MIN                              ? infinity()
                       : MODE == REDUCE_MAX                              ? -infinity()
                                                                         : 0.0f;
    if constexpr (WITH_INDICES) nothing.words[1] = __int_as_float(NOWHERE);
    return nothing;
  }

  __device__ __forceinline__ static Reduction of_element(float x, int position) {
    Reduction one;
    one.words[0] = x;
    if constexpr (MODE == REDUCE_AMAX || MODE == REDUCE_NORM1) one.words[0] = fabsf(x);
    if constexpr (MODE == REDUCE_NORM2) one.words[0] = x * x;
    if constexpr (MODE == REDUCE_MUL_NO_ZEROS) one.words[0] = x == 0.0f ? 1.0f : x;
    if constexpr (WITH_INDICES) one.words[1] = __int_as_float(position);
    return one;
  }

  __device__ __forceinline__ static Reduction merged(const Reduction& a, const Reduction& b) {
    if constexpr (WITH_INDICES) return is_before(b, a) ? b : a;
    Reduction both;
    both.words[0] = merged(a.words[0], b.words[0]);
    return both;
  }

  // The value of a whole row of `count` elements.
  __device__ __forceinline__ float value(float count) const {
    if constexpr (MODE == REDUCE_MEAN) return count == 0.0f ? 0.0f : words[0] / count;
    if constexpr (MODE == REDUCE_NORM2) return sqrtf(words[0]);
    return words[0];
  }

  __device__ __forceinline__ int position() const {
    if constexpr (!WITH_INDICES) return -1;
    const int at = __float_as_int(words[WORDS - 1]);
    return at == NOWHERE ? -1 : at;
  }

 private:
  __device__ __forceinline__ static float merged(float a, float b) {
    if constexpr (MODE == REDUCE_MUL || MODE == REDUCE_MUL_NO_ZEROS) return a * b;
    if constexpr (MODE == REDUCE_MIN) return -max_nan(-a, -b);
    if constexpr (MODE == REDUCE_MAX || MODE == REDUCE_AMAX) return max_nan(a, b);
    return a + b;
  }

  // Whether `a` is the one to pick: NaN before all else, then the extreme, of equal ones the first.
  __device__ __forceinline__ static bool is_before(const Reduction& a, const Reduction& b) {
    const float x = a.words[0], y = b.words[0];
    const bool equal = x == y || (is_nan(x) && is_nan(y));
    if (equal) return __float_as_int(a.words[WORDS - 1]) < __float_as_int(b.words[WORDS - 1]);
    if (is_nan(x) || is_nan(y)) return is_nan(x);
    return MODE == REDUCE_MIN ? x < y : x > y;
  }
};
