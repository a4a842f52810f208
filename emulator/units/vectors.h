// The widest vectors of floats that the instruction set has.
#pragma once

#ifdef __FMA__
#include <immintrin.h>
#endif

#ifndef KILN_EMULATOR_ISA
#error "the execution units are compiled with KILN_EMULATOR_ISA set to avx512, avx2 or baseline"
#endif

namespace kiln::emulator::KILN_EMULATOR_ISA {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif
inline constexpr int vector_lanes = vector_bytes / 4;
using Vector = float __attribute__((vector_size(vector_bytes)));

inline Vector splat(float x) {
  return x - Vector{};
}

/// a * b + c, rounded once.
inline Vector fma(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  Vector d;
  for (int k = 0; k < vector_lanes; ++k) d[k] = __builtin_fmaf(a[k], b[k], c[k]);
  return d;
#endif
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
