// Vectors of N elements that move between global memory and registers in accesses of up to 16 bytes.
//
// N is a power of two. The address must be aligned to the access: min(16, N * sizeof(T)) bytes.

template <int BYTES>
struct WordOf;
template <>
struct WordOf<1> {
  using type = unsigned char;
};
template <>
struct WordOf<2> {
  using type = unsigned short;
};
template <>
struct WordOf<4> {
  using type = unsigned;
};
template <>
struct WordOf<8> {
  using type = uint2;
};
template <>
struct WordOf<16> {
  using type = uint4;
};

template <class T, int N>
struct Vector {
  static_assert(N > 0 && (N & (N - 1)) == 0, "a vector has a power of two elements");
  static constexpr int BYTES = static_cast<int>(sizeof(T)) * N;
  static constexpr int WORDS = BYTES <= 16 ? 1 : BYTES / 16;  // accesses
  using Word = typename WordOf<BYTES / WORDS>::type;

  union {
    T data[N];
    Word words[WORDS];
  };

  __device__ __forceinline__ Vector() {}
  __device__ __forceinline__ T& operator[](int i) { return data[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return data[i]; }
};

template <class T, int N>
__device__ __forceinline__ Vector<T, N> zeros() {
  Vector<T, N> result;
#pragma unroll
  for (int i = 0; i < N; ++i) result[i] = T{};
  return result;
}

// Memory that the kernel also writes.
template <int N, class T>
__device__ __forceinline__ Vector<T, N> load(const T* address) {
  using V = Vector<T, N>;
  V result;
#pragma unroll
  for (int i = 0; i < V::WORDS; ++i) result.words[i] = reinterpret_cast<const typename V::Word*>(address)[i];
  return result;
}

// Memory that nothing writes while the kernel runs: ld.global.nc.
template <int N, class T>
__device__ __forceinline__ Vector<T, N> load_readonly(const T* address) {
  using V = Vector<T, N>;
  V result;
#pragma unroll
  for (int i = 0; i < V::WORDS; ++i) result.words[i] = __ldg(reinterpret_cast<const typename V::Word*>(address) + i);
  return result;
}

template <int N, class T>
__device__ __forceinline__ void store(T* address, const Vector<T, N>& value) {
  using V = Vector<T, N>;
#pragma unroll
  for (int i = 0; i < V::WORDS; ++i) reinterpret_cast<typename V::Word*>(address)[i] = value.words[i];
}
