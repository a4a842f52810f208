// Sums of scatter: a thread adds an update to its element as an integer, so that the order does not count
// (lib/exact_sum.cuh). Parameters: scatter_exact.cpp.
#include "lib/exact_sum.cuh"
#include "lib/scatter_lines.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_exact_largest(const TUPDATES* updates, const i32* indices, TY* y, int* largest, unsigned long long* sums,
                          float alpha, float beta, UserArguments user, long long n) {
  with_update(updates, indices, n,
              [&](long long element, float update) { note_largest(largest + element, largest_of_term(update)); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_exact_sums(const TUPDATES* updates, const i32* indices, TY* y, int* largest, unsigned long long* sums,
                       float alpha, float beta, UserArguments user, long long n) {
  with_update(updates, indices, n, [&](long long element, float update) {
    add_units(sums + element, units_of_term(largest[element], update));
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_exact(const TUPDATES* updates, const i32* indices, TY* y, int* largest, unsigned long long* sums,
                  float alpha, float beta, UserArguments user, long long n) {
  store_scattered(y, n, {alpha, beta, user}, [&](Index number) { return value_of_sum(sums[number], largest[number]); });
}
