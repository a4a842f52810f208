#include "fma_peak.h"

#include <time.h>

#include <algorithm>

namespace kiln::bench {
namespace {

constexpr int chains = 12;  // more than latency times throughput, fewer than the registers
constexpr long rounds = 4'000'000;

template <int lanes>
using Vector [[gnu::vector_size(lanes * 4)]] = float;

template <int lanes>
[[gnu::always_inline]] inline double measure() {
  Vector<lanes> sum[chains], a = {}, b = {};
  for (int k = 0; k < lanes; ++k) a[k] = 0.999f, b[k] = 1e-6f;
  for (int c = 0; c < chains; ++c) sum[c] = a * static_cast<float>(c);
  const double start = thread_seconds();
  for (long r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) sum[c] = sum[c] * a + b;
  }
  // Rounding forbids the compiler to shorten the chains; using their sum forbids it to drop them.
  Vector<lanes> total = {};
  for (int c = 0; c < chains; ++c) total += sum[c];
  const double seconds = thread_seconds() - start;
  asm volatile("" ::"m"(total));
  return 2.0 * lanes * chains * static_cast<double>(rounds) / seconds * 1e-9;
}

[[gnu::target("arch=x86-64-v4,prefer-vector-width=512"), gnu::optimize("O3", "fp-contract=fast")]] double
measure_512() {
  return measure<16>();
}
[[gnu::target("arch=x86-64-v3"), gnu::optimize("O3", "fp-contract=fast")]] double measure_256() {
  return measure<8>();
}
[[gnu::optimize("O3")]] double measure_128() {
  return measure<4>();
}

double once() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return measure_512();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return measure_256();
  return measure_128();
}

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double fma_peak_gflops() {
  double best = 0;
  for (int run = 0; run < 5; ++run) best = std::max(best, once());
  return best;
}

}  // namespace kiln::bench
