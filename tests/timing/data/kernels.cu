// Kernels whose addresses and paths follow from integers alone, so that interpreter_test.cpp can tell what they do.
// The .sass files beside it are what nvcc 13.0 and `nvdisasm -c -hex` make of it for each architecture,
// less repeated blanks.
typedef unsigned int u32;

// Every thread goes round a loop as often as its number says, and leaves at two places.
extern "C" __global__ void diverge(u32* out, u32 n) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  if (t >= n) return;
  for (u32 i = 0; i < t % 7; ++i) {
    if ((t + i) & 1)
      sum += i * 3;
    else
      sum ^= t << (i & 3);
  }
  out[sum] = t;
}

// Division by a number that the compiler does not know, of 32 and 64 bits.
extern "C" __global__ void divide(u32* out, u32 d, unsigned long long e) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  int s = (int)t - 40;
  out[t / d + 100 * (t % d)] = 0;
  out[1000 + (u32)(s / (int)d + 50)] = 0;
  out[(u32)((t * 0x100000001ull + 5) / e % 1000)] = 0;
}

// Integers through shared memory, behind barriers, with conflicts of banks as the stride has them.
extern "C" __global__ void exchange(u32* out, u32 stride) {
  __shared__ u32 tile[2048];
  u32 t = threadIdx.x;
  tile[t * stride] = t * t;
  __syncthreads();
  u32 other = tile[(blockDim.x - 1 - t) * stride];
  for (u32 step = 1; step < 4; ++step) {
    __syncthreads();
    tile[t] = other + step;
    __syncthreads();
    other += tile[t ^ step];
  }
  out[other] = t;
}

// Between lanes.
extern "C" __global__ void lanes(u32* out) {
  u32 t = threadIdx.x;
  u32 a = __shfl_xor_sync(~0u, t, 5), b = __shfl_up_sync(~0u, t * 2, 3), c = __shfl_down_sync(~0u, t * 3, 4, 8);
  u32 d = __shfl_sync(~0u, t + 7, t / 2), e = __ballot_sync(~0u, (t & 3) == 1);
  out[a + 64 * (b & 31)] = 0;
  out[c + d] = 0;
  out[__popc(e >> t) + __ffs(e) + __clz(t + 1) + (__any_sync(~0u, t == 31) ? 1000 : 0)] = 0;
}

// An array that registers cannot hold, since its index is not known to the compiler.
extern "C" __global__ void indexed(u32* out, u32 n) {
  u32 values[24];
  u32 t = threadIdx.x;
#pragma unroll
  for (u32 i = 0; i < 24; ++i) values[i] = i * i + t;
  u32 at = t % 24;
  for (u32 i = 0; i < n; ++i) {
    values[at] += i;
    at = values[at] % 24;
  }
  out[values[at]] = at;
}

// Bytes, halves, wide accesses; signed and unsigned.
extern "C" __global__ void widths(unsigned char* bytes, uint4* wide, short* halves) {
  u32 t = threadIdx.x;
  bytes[t * 3] = 1;
  wide[t] = make_uint4(1, 2, 3, t);
  halves[t ^ 1] = 2;
  long long back = (long long)t * -24;
  *(u32*)((char*)wide + 4096 + back) = 3;
}

// Called, not inlined.
__device__ __noinline__ u32 helper(u32 x, u32 y) {
  u32 r = 1;
  while (y) {
    if (y & 1) r *= x;
    x *= x;
    y >>= 1;
  }
  return r;
}
extern "C" __global__ void calls(u32* out) {
  u32 t = threadIdx.x;
  out[helper(3, t & 7) % 4099 + helper(t, 2)] = 0;
}

// Where a branch goes depends on what is read.
extern "C" __global__ void by_data(const u32* in, u32* out) {
  u32 t = threadIdx.x, sum = 0;
  for (u32 i = 0; i < in[t]; ++i) {
    sum += out[i];
    __threadfence_block();
  }
  out[t] = sum;
}
