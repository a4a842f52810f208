// TURNS times LENGTH products of each of CHAINS on the tensor unit; those of a chain wait for one another. No data
// come.
typedef unsigned int u32;

extern "C" __global__ void tensor_rate(u32* out) {
  u32 sums[CHAINS][4] = {};
  const u32 a[4] = {threadIdx.x, 1, 2, 3}, b[2] = {4, threadIdx.x};
#pragma unroll 1
  for (u32 turn = 0; turn < TURNS; ++turn) {
#pragma unroll
    for (u32 i = 0; i < CHAINS * LENGTH; ++i)
      asm volatile("mma.sync.aligned." SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+r"(sums[i % CHAINS][0]), "+r"(sums[i % CHAINS][1]), "+r"(sums[i % CHAINS][2]),
                     "+r"(sums[i % CHAINS][3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  for (u32 i = 0; i < CHAINS; ++i)
    out[i * blockDim.x + threadIdx.x] = sums[i][0] + sums[i][1] + sums[i][2] + sums[i][3];
}
