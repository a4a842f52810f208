// Least and largest updates of scatter: a thread notes an update at its element, as an integer whose order is that of
// the numbers. Parameters: scatter_extremes.cpp.
//
// keys: [elements of y, line by line] u32, 0 at first.
#include "lib/scatter_lines.cuh"

constexpr unsigned int NAN_KEY = 0xffffffffu;  // above all numbers

// An integer above 0, of the number's negative where the least is asked for.
__device__ __forceinline__ unsigned int key_of(float update) {
  const float value = MODE == SCATTER_MIN ? -update : update;
  if (value != value) return NAN_KEY;
  const unsigned int bits = __float_as_uint(value);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float value_of_key(unsigned int key) {
  if (key == 0) return of_no_update();
  if (key == NAN_KEY) return nan();
  const float value = __uint_as_float((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
  return MODE == SCATTER_MIN ? -value : value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_extremes_keys(const TUPDATES* updates, const i32* indices, TY* y, unsigned int* keys, float alpha,
                          float beta, UserArguments user, long long n) {
  with_update(updates, indices, n, [&](long long element, float update) { atomicMax(keys + element, key_of(update)); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_extremes(const TUPDATES* updates, const i32* indices, TY* y, unsigned int* keys, float alpha, float beta,
                     UserArguments user, long long n) {
  store_scattered(y, n, {alpha, beta, user}, [&](Index number) { return value_of_key(keys[number]); });
}
