// Arithmetic on extents and indices.

template <class T>
__host__ __device__ constexpr T ceil_div(T value, T divisor) {
  return (value + divisor - 1) / divisor;
}

template <class T>
__host__ __device__ constexpr T smaller(T a, T b) {
  return a < b ? a : b;
}

template <class T>
__host__ __device__ constexpr T larger(T a, T b) {
  return a < b ? b : a;
}

template <class Index>
struct UnsignedOf {
  using type = unsigned;
};
template <>
struct UnsignedOf<long long> {
  using type = unsigned long long;
};

// The quotient of a value and an extent of another type than OpenExtent, which lib/open_extent.cuh has.
template <class Unsigned, class Extent>
__device__ __forceinline__ Unsigned quotient_of(Unsigned value, Extent extent) {
  return value / static_cast<Unsigned>(extent);
}

// Takes the innermost coordinate off a linear index: returns index % extent and leaves index / extent. Indices are not
// negative. Where the extent is a constant, or an OpenExtent, the division is a multiplication.
template <class Index, class Extent>
__device__ __forceinline__ Index take_coordinate(Index& index, Extent extent) {
  using Unsigned = typename UnsignedOf<Index>::type;
  const Unsigned value = static_cast<Unsigned>(index);
  const Unsigned quotient = quotient_of(value, extent);
  index = static_cast<Index>(quotient);
  return static_cast<Index>(value - quotient * static_cast<Unsigned>(extent));
}

// Index of this thread in a one-dimensional grid of blocks of THREADS.
template <int THREADS, class Index>
__device__ __forceinline__ Index global_thread() {
  return static_cast<Index>(blockIdx.x) * THREADS + static_cast<Index>(threadIdx.x);
}

// The place of a block in the x and y of a grid.
struct GridBlock {
  unsigned x, y;

  __device__ __forceinline__ GridBlock() : x(blockIdx.x), y(blockIdx.y) {}
};
