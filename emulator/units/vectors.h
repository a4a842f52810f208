// The widest vectors of floats that the instruction set has.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

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
template <class T>  // of 4 bytes
using VectorOf [[gnu::vector_size(vector_bytes)]] = T;
using Vector = VectorOf<float>;

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

inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return fma(a, b, c);
}
inline VectorOf<int32_t> multiply_add(VectorOf<int32_t> a, VectorOf<int32_t> b, VectorOf<int32_t> c) {
  return a * b + c;
}

/// The four at `from`, again and again.
template <class T>
inline VectorOf<T> repeat_four(const T* from) {
#if defined(__AVX512F__)
  return std::bit_cast<VectorOf<T>>(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif defined(__AVX__)
  return std::bit_cast<VectorOf<T>>(_mm256_broadcast_ps(reinterpret_cast<const __m128*>(from)));
#else
  VectorOf<T> four;
  std::memcpy(&four, from, sizeof(four));
  return four;
#endif
}

/// Element `chosen` of each group of four lanes in all four.
template <size_t chosen, class V>
inline V spread_in_fours(V v) {
  return [&]<size_t... lane>(std::index_sequence<lane...>) {
    return __builtin_shufflevector(v, v, static_cast<int>(lane / 4 * 4 + chosen)...);
  }
  (std::make_index_sequence<vector_lanes>());
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
