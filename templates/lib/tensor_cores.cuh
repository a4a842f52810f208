// Instructions of tensor cores, by the PTX ISA: ldmatrix, mma.sync.
//
// A warp multiplies 16 rows of A by 8 columns of B, 32 bytes of each along the depth. In the fragments of lane l, g =
// l / 4 and t = l % 4: a[0] bytes 4t to 4t + 3 of A[g], a[1] those of A[g+8], a[2] and a[3] those 16 bytes further
// along the depth; b[0] bytes 4t to 4t + 3 of column g of B, b[1] 16 bytes further; sums[0], sums[1] C[g][2t, 2t+1],
// sums[2], sums[3] C[g+8][the same].

// An address in shared memory as these instructions take it.
__device__ __forceinline__ unsigned shared_address(const void* address) {
  return static_cast<unsigned>(__cvta_generic_to_shared(address));
}

// Four matrices of 8 x 8 elements of 16 bits. Lane l gives the address of 16 bytes: row l % 8 of matrix l / 8. If
// TRANSPOSED, it is a column of the matrix.
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned (&matrices)[4], unsigned address) {
  if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(address)
                 : "memory");
  }
}

// The word at an address in shared memory.
__device__ __forceinline__ void load_word(unsigned& word, unsigned address) {
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
}

// sums += A B, elements of type T, sums in f32. Of f32 factors the tensor cores read 10 bits behind the point: tf32.
template <class T>
__device__ __forceinline__ void multiply_fragments(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]);

#if __CUDA_ARCH__ >= 800
template <>
__device__ __forceinline__ void multiply_fragments<f16>(float (&sums)[4], const unsigned (&a)[4],
                                                        const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void multiply_fragments<bf16>(float (&sums)[4], const unsigned (&a)[4],
                                                         const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void multiply_fragments<f32>(float (&sums)[4], const unsigned (&a)[4],
                                                        const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
// 7.5 has half the depth in an instruction, and neither bf16 nor tf32.
template <>
__device__ __forceinline__ void multiply_fragments<f16>(float (&sums)[4], const unsigned (&a)[4],
                                                        const unsigned (&b)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
  }
}
#endif

// A B, elements and sums in f16: sums[0] C[g][2t, 2t+1], sums[1] C[g+8][the same]. On 7.5 in two steps.
__device__ __forceinline__ void multiply_in_f16(unsigned (&sums)[2], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %8};"
      : "=r"(sums[0]), "=r"(sums[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(0));
#else
  sums[0] = sums[1] = 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
        : "+r"(sums[0]), "+r"(sums[1])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
  }
#endif
}

// Whether there are instructions that multiply fp8 by fp8: mma.sync has them on 8.9 and 12.x. For 9.0 and 10.0 the
// compiler makes them of those for f16, anew for each product.
#if (__CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204
constexpr bool MULTIPLIES_FP8 = true;
#else
constexpr bool MULTIPLIES_FP8 = false;
#endif

// sums += A B, elements of the types A and B, f8e4m3 or f8e5m2. Sums keep 13 bits behind the point.
template <class A, class B>
__device__ __forceinline__ void multiply_fp8(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#define KILN_MULTIPLY(TYPES)                                         \
  asm("mma.sync.aligned.m16n8k32.row.col.f32." TYPES                 \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, " \
      "%2, %3};"                                                     \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])   \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  constexpr bool A_IS_E4M3 = A::DIGITS == 4, B_IS_E4M3 = B::DIGITS == 4;
  if constexpr (A_IS_E4M3 && B_IS_E4M3) KILN_MULTIPLY("e4m3.e4m3");
  if constexpr (A_IS_E4M3 && !B_IS_E4M3) KILN_MULTIPLY("e4m3.e5m2");
  if constexpr (!A_IS_E4M3 && B_IS_E4M3) KILN_MULTIPLY("e5m2.e4m3");
  if constexpr (!A_IS_E4M3 && !B_IS_E4M3) KILN_MULTIPLY("e5m2.e5m2");
#undef KILN_MULTIPLY
}

// sums += A B, elements of the types A and B, i8 or u8. Sums are exact; too large ones stop at the largest number.
template <class A, class B>
__device__ __forceinline__ void multiply_int8(int (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#define KILN_MULTIPLY(TYPES)                                         \
  asm("mma.sync.aligned.m16n8k32.row.col.satfinite.s32." TYPES       \
      ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, " \
      "%2, %3};"                                                     \
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])   \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  constexpr bool A_HAS_SIGN = A(-1) < A(0), B_HAS_SIGN = B(-1) < B(0);
  if constexpr (A_HAS_SIGN && B_HAS_SIGN) KILN_MULTIPLY("s8.s8");
  if constexpr (A_HAS_SIGN && !B_HAS_SIGN) KILN_MULTIPLY("s8.u8");
  if constexpr (!A_HAS_SIGN && B_HAS_SIGN) KILN_MULTIPLY("u8.s8");
  if constexpr (!A_HAS_SIGN && !B_HAS_SIGN) KILN_MULTIPLY("u8.u8");
#undef KILN_MULTIPLY
}
