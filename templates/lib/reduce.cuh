// Reductions over lanes of a warp and over a block. Every participant gets the result, and the order in which values
// are combined is fixed: equal inputs give equal bits.
//
// `combine` is associative and commutative up to rounding: (float, float) -> float.

// Over groups of LANES neighbouring lanes (a power of two up to 32). All 32 lanes of the warp must take part.
template <int LANES, class Combine>
__device__ __forceinline__ float lanes_reduce(float value, Combine combine) {
  static_assert(LANES >= 1 && LANES <= 32 && (LANES & (LANES - 1)) == 0, "LANES must be a power of two up to 32");
#pragma unroll
  for (int distance = LANES / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// Over all THREADS threads of a one-dimensional block (a multiple of 32). `scratch` is shared memory for one float a
// warp; nobody may be using it still. All threads of the block must take part.
template <int THREADS, class Combine>
__device__ __forceinline__ float block_reduce(float value, float* scratch, Combine combine) {
  constexpr int WARPS = THREADS / 32;
  static_assert(THREADS % 32 == 0 && WARPS >= 1 && WARPS <= 32, "a block is made of 1 to 32 whole warps");
  value = lanes_reduce<32>(value, combine);
  if constexpr (WARPS == 1) return value;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 == 0) scratch[warp] = value;
  __syncthreads();
  value = scratch[0];
#pragma unroll
  for (int i = 1; i < WARPS; ++i) value = combine(value, scratch[i]);
  __syncthreads();  // so that the caller may use `scratch` again
  return value;
}

struct Sum {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

// Drops NaN.
struct Maximum {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
