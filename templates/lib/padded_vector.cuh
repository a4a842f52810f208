// Vectors at places that may be padding, and their elements as f32.
#include "lib/vector.cuh"

// A word of memory that nothing writes while the kernel runs, or zero where `exists` is false: then nothing is read. Of
// a load in a branch the compiler would make several instructions: it computes the address again, and moves the result.
__device__ __forceinline__ void load_word_if(bool exists, const unsigned char* address, unsigned char& word) {
  word = 0;
  if (exists) word = __ldg(address);
}
__device__ __forceinline__ void load_word_if(bool exists, const unsigned short* address, unsigned short& word) {
  asm("{ .reg .pred p; setp.ne.u32 p, %1, 0; mov.b16 %0, 0; @p ld.global.nc.u16 %0, [%2]; }"
      : "=&h"(word)
      : "r"(static_cast<unsigned>(exists)), "l"(address));
}
__device__ __forceinline__ void load_word_if(bool exists, const unsigned* address, unsigned& word) {
  asm("{ .reg .pred p; setp.ne.u32 p, %1, 0; mov.b32 %0, 0; @p ld.global.nc.u32 %0, [%2]; }"
      : "=&r"(word)
      : "r"(static_cast<unsigned>(exists)), "l"(address));
}
__device__ __forceinline__ void load_word_if(bool exists, const uint2* address, uint2& word) {
  asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; mov.b32 %1, 0; @p ld.global.nc.v2.u32 {%0, %1}, [%3]; }"
      : "=&r"(word.x), "=&r"(word.y)
      : "r"(static_cast<unsigned>(exists)), "l"(address));
}
__device__ __forceinline__ void load_word_if(bool exists, const uint4* address, uint4& word) {
  asm("{ .reg .pred p; setp.ne.u32 p, %4, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;"
      " @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%5]; }"
      : "=&r"(word.x), "=&r"(word.y), "=&r"(word.z), "=&r"(word.w)
      : "r"(static_cast<unsigned>(exists)), "l"(address));
}

// As load_readonly(), or zeros.
template <int N, class T>
__device__ __forceinline__ Vector<T, N> load_readonly_if(bool exists, const T* address) {
  using V = Vector<T, N>;
  V result;
#pragma unroll
  for (int i = 0; i < V::WORDS; ++i) {
    load_word_if(exists, reinterpret_cast<const typename V::Word*>(address) + i, result.words[i]);
  }
  return result;
}

// Number `i` of the 32-bit words of a vector.
__device__ __forceinline__ unsigned part_of(unsigned word, int) {
  return word;
}
__device__ __forceinline__ unsigned part_of(uint2 word, int i) {
  return i == 0 ? word.x : word.y;
}
__device__ __forceinline__ unsigned part_of(uint4 word, int i) {
  return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}

// The elements as f32. Two of bf16 are converted by an instruction each, which the compiler does not find by itself.
template <class T, int N>
__device__ __forceinline__ void to_floats(const Vector<T, N>& vector, float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = to_float(vector[i]);
}
template <int N>
__device__ __forceinline__ void to_floats(const Vector<bf16, N>& vector, float (&values)[N]) {
  if constexpr (N == 1) {
    values[0] = to_float(vector[0]);
  } else {
    constexpr int PARTS = static_cast<int>(sizeof(typename Vector<bf16, N>::Word)) / 4;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const unsigned both = part_of(vector.words[i / PARTS], i % PARTS);
      values[2 * i] = __uint_as_float(both << 16);
      values[2 * i + 1] = __uint_as_float(both & 0xffff0000u);
    }
  }
}
