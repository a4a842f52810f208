// out[M][N] = a[M][K] b[N][K]^T in f16 with sums in f32: mma.sync on tiles that cp.async brings, STAGES of them under
// way. A block makes TILE x TILE with four warps of 64 x 64. M and N are multiples of TILE, K of DEPTH, which is 16
// or 32. Pieces of 16 bytes of a tile's rows are swapped by the row, so that ldmatrix meets no bank twice.
typedef unsigned int u32;
constexpr u32 TILE = 128, PIECES = DEPTH / 8, THREADS = 128;
static_assert(STAGES >= 1 && STAGES <= 6, "STAGES tiles of a and b have to fit into shared memory");

__device__ u32 place(u32 row, u32 piece) {
  return row * DEPTH * 2 + ((piece ^ (row / (8 / PIECES) % PIECES)) * 16);
}

__device__ void copy(u32 to, const unsigned short* from, u32 k) {
#pragma unroll
  for (u32 turn = 0; turn < TILE * PIECES / THREADS; ++turn) {
    const u32 row = threadIdx.x / PIECES + turn * (THREADS / PIECES), piece = threadIdx.x % PIECES;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + place(row, piece)),
                 "l"(from + (size_t)row * k + piece * 8));
  }
}

__device__ void load(u32 (&r)[4], u32 from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

__device__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128)
    multistage(float* out, const unsigned short* a, const unsigned short* b, u32 n, u32 k) {
  extern __shared__ __align__(128) unsigned char tiles[];
  const u32 base = (u32)__cvta_generic_to_shared(tiles), bytes = TILE * DEPTH * 2, parts = k / DEPTH;
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / 2 * 64, column = warp % 2 * 64;
  a += (size_t)blockIdx.y * TILE * k;
  b += (size_t)blockIdx.x * TILE * k;
  float sums[4][8][4] = {};
  const auto bring = [&](u32 part, u32 stage) {
    if (part < parts) {
      const u32 to = base + stage * 2 * bytes;
      copy(to, a + part * DEPTH, k);
      copy(to + bytes, b + part * DEPTH, k);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (u32 part = 0; part + 1 < STAGES; ++part) bring(part, part);
  u32 stage = 0, next = STAGES - 1;
  for (u32 part = 0; part < parts; ++part) {
    if (STAGES == 1) bring(part, 0);
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES > 1 ? STAGES - 2 : 0) : "memory");
    __syncthreads();
    if (STAGES > 1) bring(part + STAGES - 1, next);
    const u32 from = base + stage * 2 * bytes;
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    next = next + 1 == STAGES ? 0 : next + 1;
#pragma unroll
    for (u32 step = 0; step < DEPTH / 16; ++step) {
      u32 left[4][4], right[4][4];
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        load(left[i], from + place(row + i * 16 + lane % 16, step * 2 + lane / 16));
        load(right[i], from + bytes + place(column + i * 16 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2));
      }
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
#pragma unroll
        for (u32 j = 0; j < 8; ++j) multiply(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
      }
    }
    if (STAGES == 1) __syncthreads();
  }
  out += (size_t)(blockIdx.y * TILE + row + lane / 4) * n + blockIdx.x * TILE + column + lane % 4 * 2;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
      float* to = out + (size_t)i * 16 * n + j * 8;
      to[0] = sums[i][j][0], to[1] = sums[i][j][1];
      to[8 * (size_t)n] = sums[i][j][2], to[8 * (size_t)n + 1] = sums[i][j][3];
    }
  }
}
