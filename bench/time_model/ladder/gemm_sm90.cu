// c[M][N] = a[M][K] b[N][K]^T in bf16 with sums in f32, for sm_90a: the steps of a ladder from one warpgroup that waits
// for its own copies to clusters that share them. Tiles come by tensor maps of boxes with 64 columns, swizzled over 128
// bytes: of a BLOCK_M rows, of b BLOCK_N / CLUSTER, of c BLOCK_M / CONSUMERS. M, N and K are multiples of BLOCK_M *
// CLUSTER, BLOCK_N and 64. Blocks of CONSUMERS + 1 warpgroups (of one, if CONSUMERS is 0, which has STAGES 1).
//   CONSUMERS   warpgroups that multiply; 0: one that loads, waits and multiplies
//   TOKENS      every thread arrives at the barriers, as it does with cuda::barrier; else one of each warpgroup
//   PERSISTENT  as many blocks as SMs, each with many tiles; else one of each
//   ORDER       of the tiles: 0 rows, 1 supertiles of 16 x 8 tiles, 2 a Hilbert curve
//   CLUSTER     blocks that share the tiles of b, each of which brings its part for all
//   BULK_STORE  c goes out by way of shared memory
// tests/timing checks that it compiles without spills; no GPU has run it.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 DEPTH = 64, GROUPS = CONSUMERS == 0 ? 1 : CONSUMERS, ROWS = BLOCK_M / GROUPS, PARTS = ROWS / 64;
constexpr u32 A_BYTES = BLOCK_M * DEPTH * 2, B_BYTES = BLOCK_N * DEPTH * 2, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr u32 C_BYTES = 64 * 64 * 2;  // a box of c, of which a consumer has two
constexpr u32 THREADS = (CONSUMERS + 1) * 128;
static_assert(BLOCK_N == 128 || BLOCK_N == 256, "wgmma is written for these columns");
static_assert(ROWS % 64 == 0, "a wgmma has 64 rows");
static_assert(CONSUMERS > 0 || STAGES == 1, "without a producer there is one stage");
static_assert(!BULK_STORE || PARTS == 1, "a box of c is what one wgmma has made");
static_assert(CLUSTER == 1 || !TOKENS, "arrivals at another block's barrier have no token");

struct __align__(64) Map {
  u8 bytes[128];
};

__device__ u32 shared(const void* pointer) {
  return (u32)__cvta_generic_to_shared(pointer);
}

__device__ void make_barrier(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ void wait(u32 barrier, u32 parity) {
  asm volatile(
      "{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra done; bra again; done: }" ::
          "r"(barrier),
      "r"(parity)
      : "memory");
}

// Arrives, and waits for the phase in which it did.
__device__ void arrive_and_wait(u32 barrier) {
  asm volatile(
      "{ .reg .pred p; .reg .b64 token; mbarrier.arrive.shared::cta.b64 token, [%0];"
      "again: mbarrier.try_wait.shared::cta.b64 p, [%0], token; @p bra done; bra again; done: }" ::"r"(barrier)
      : "memory");
}

__device__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// At the barrier of that place in another block of the cluster.
__device__ void arrive_at(u32 barrier, u32 block) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::
          "r"(barrier),
      "r"(block)
      : "memory");
}

__device__ void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ void load(u32 to, const Map* map, u32 column, u32 row, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

__device__ void load_for_all(u32 to, const Map* map, u32 column, u32 row, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"((unsigned short)((1 << CLUSTER) - 1))
      : "memory");
}

// Descriptor of rows of 128 bytes, swizzled; eight of them are 1024 bytes.
__device__ u64 descriptor(u32 address) {
  return (u64)1 << 62 | (u64)(1024 >> 4) << 32 | (u64)1 << 16 | (address & 0x3ffff) >> 4;
}

// d += a b, or d = a b if it adds nothing: 64 rows of a, 16 of K.
#define EIGHT(i)                                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#if BLOCK_N == 128
__device__ void multiply(float (&d)[64], u64 a, u64 b, u32 adds) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0; }"
      : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56)
      : "l"(a), "l"(b), "r"(adds));
}
#else
__device__ void multiply(float (&d)[128], u64 a, u64 b, u32 adds) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0; }"
      : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56), EIGHT(64), EIGHT(72),
        EIGHT(80), EIGHT(88), EIGHT(96), EIGHT(104), EIGHT(112), EIGHT(120)
      : "l"(a), "l"(b), "r"(adds));
}
#endif

struct Tile {
  u32 m, n;
};

// The tile of that number, of rows x columns of them.
__device__ Tile tile_of(u32 number, u32 rows, u32 columns) {
  if (ORDER == 0) return {number / columns, number % columns};
  if (ORDER == 1) {  // 16 x 8 tiles of blocks, of clusters 16 / CLUSTER x 8
    constexpr u32 HIGH = 16 / CLUSTER, WIDE = 8;
    const u32 super = number / (HIGH * WIDE), inside = number % (HIGH * WIDE);
    return {super / (columns / WIDE) * HIGH + inside / WIDE, super % (columns / WIDE) * WIDE + inside % WIDE};
  }
  u32 x = 0, y = 0;
  for (u32 side = 1, rest = number; side < rows; side *= 2, rest /= 4) {
    const u32 right = rest / 2 & 1, up = (rest ^ right) & 1;
    if (up == 0) {
      if (right == 1) x = side - 1 - x, y = side - 1 - y;
      const u32 other = x;
      x = y, y = other;
    }
    x += side * right, y += side * up;
  }
  return {y, x};
}

__device__ void multiply_stage(float (&sums)[PARTS][BLOCK_N / 2], u32 a, u32 b, bool first) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (u32 part = 0; part < PARTS; ++part) {
#pragma unroll
    for (u32 k = 0; k < DEPTH / 16; ++k)
      multiply(sums[part], descriptor(a + part * 64 * DEPTH * 2 + k * 32), descriptor(b + k * 32), !first || k > 0);
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ u32 pair(float low, float high) {
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// A thread has columns 8 j + 2 (lane % 4) and the next, of rows lane / 4 and that + 8 of its warp's 16.
__device__ void store(const float (&sums)[PARTS][BLOCK_N / 2], unsigned short* c, u32 row, u32 column, u32 n) {
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (u32 part = 0; part < PARTS; ++part) {
    u32* to = (u32*)(c + (size_t)(row + part * 64 + warp * 16 + lane / 4) * n + column + lane % 4 * 2);
#pragma unroll
    for (u32 j = 0; j < BLOCK_N / 8; ++j) {
      to[j * 4] = pair(sums[part][j * 4], sums[part][j * 4 + 1]);
      to[j * 4 + 4 * n] = pair(sums[part][j * 4 + 2], sums[part][j * 4 + 3]);
    }
  }
}

// By boxes of 64 x 64, of which two take turns; `box` is swizzled as the tensor map says.
__device__ void store_in_bulk(const float (&sums)[PARTS][BLOCK_N / 2], u32 boxes, const Map* map, u32 row, u32 column,
                              u32 group) {
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (u32 chunk = 0; chunk < BLOCK_N / 64; ++chunk) {
    const u32 box = boxes + chunk % 2 * C_BYTES;
    if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {  // 16 columns: matrices of rows 0 to 7 and 8 to 15, of columns 0 to 7 and 8 to 15
      const float* d = &sums[0][chunk * 32 + j * 8];
      const u32 line = warp * 16 + lane % 16, piece = j * 2 + lane / 16;
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(box + line * 128 +
                                                                                            ((piece ^ line % 8) * 16)),
                   "r"(pair(d[0], d[1])), "r"(pair(d[2], d[3])), "r"(pair(d[4], d[5])), "r"(pair(d[6], d[7]))
                   : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    if (threadIdx.x % 128 == 0) {
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
                   "r"(column + chunk * 64), "r"(row), "r"(box)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
}

#if CONSUMERS == 0

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c_map,
         unsigned short* c, u32 m, u32 n, u32 k) {
  extern __shared__ __align__(1024) u8 tiles[];
  __shared__ __align__(8) u64 full;
  const u32 there = shared(&full), to = shared(tiles);
  const Tile tile = tile_of(blockIdx.x, m / BLOCK_M, n / BLOCK_N);
  if (threadIdx.x == 0) {
    make_barrier(there, TOKENS ? THREADS : 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  float sums[PARTS][BLOCK_N / 2];
  for (u32 part = 0; part < k / DEPTH; ++part) {
    if (threadIdx.x == 0) {
      load(to, &a, part * DEPTH, tile.m * BLOCK_M, there);
      load(to + A_BYTES, &b, part * DEPTH, tile.n * BLOCK_N, there);
      expect(there, STAGE_BYTES);
      wait(there, part & 1);
    } else if (TOKENS) {
      arrive_and_wait(there);
    } else {
      wait(there, part & 1);
    }
    __syncwarp();
    multiply_stage(sums, to, to + A_BYTES, part == 0);
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  store(sums, c, tile.m * BLOCK_M, tile.n * BLOCK_N, n);
}

#else

struct Stage {
  u32 number = 0, parity = 0;
  __device__ void next() {
    if (++number == STAGES) number = 0, parity ^= 1;
  }
};

struct Barriers {
  u32 full, empty;  // of the first stage
};

__device__ u32 rank_in_cluster() {
  u32 rank = 0;
  if (CLUSTER > 1) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ void produce(u32 tiles, Barriers at, const Map* a, const Map* b, u32 m, u32 n, u32 k) {
  const u32 rank = rank_in_cluster();
  const u32 step = PERSISTENT ? gridDim.x / CLUSTER : ~0u / 2, all = m / BLOCK_M / CLUSTER * (n / BLOCK_N);
  Stage stage;
  for (u32 number = blockIdx.x / CLUSTER; number < all; number += step) {
    const Tile tile = tile_of(number, m / BLOCK_M / CLUSTER, n / BLOCK_N);
    for (u32 part = 0; part < k / DEPTH; ++part, stage.next()) {
      const u32 full = at.full + stage.number * 8, empty = at.empty + stage.number * 8;
      const u32 to = tiles + stage.number * STAGE_BYTES;
      if (TOKENS) {
        arrive_and_wait(empty);
      } else {
        wait(empty, stage.parity ^ 1);
      }
      expect(full, STAGE_BYTES);
      load(to, a, part * DEPTH, (tile.m * CLUSTER + rank) * BLOCK_M, full);
      if (CLUSTER == 1) {
        load(to + A_BYTES, b, part * DEPTH, tile.n * BLOCK_N, full);
      } else {
        constexpr u32 SHARE = BLOCK_N / CLUSTER;
        load_for_all(to + A_BYTES + rank * SHARE * DEPTH * 2, b, part * DEPTH, tile.n * BLOCK_N + rank * SHARE, full);
      }
    }
  }
}

__device__ void release(u32 empty) {
  if (TOKENS) {
    arrive(empty);
  } else if (CLUSTER == 1) {
    if (threadIdx.x % 128 == 0) arrive(empty);
  } else {
    if (threadIdx.x % 128 < CLUSTER) arrive_at(empty, threadIdx.x % 128);
  }
}

__device__ void consume(u32 tiles, Barriers at, const Map* c_map, unsigned short* c, u32 m, u32 n, u32 k) {
  const u32 step = PERSISTENT ? gridDim.x / CLUSTER : ~0u / 2, all = m / BLOCK_M / CLUSTER * (n / BLOCK_N);
  const u32 group = threadIdx.x / 128 - 1;
  const u32 boxes = tiles + STAGES * STAGE_BYTES + group * 2 * C_BYTES;
  float sums[PARTS][BLOCK_N / 2];
  Stage stage;
  for (u32 i = 0; TOKENS && i < STAGES; ++i) arrive(at.empty + i * 8);
  for (u32 number = blockIdx.x / CLUSTER; number < all; number += step) {
    const Tile tile = tile_of(number, m / BLOCK_M / CLUSTER, n / BLOCK_N);
    for (u32 part = 0; part < k / DEPTH; ++part, stage.next()) {
      const u32 full = at.full + stage.number * 8, from = tiles + stage.number * STAGE_BYTES;
      if (TOKENS) {
        arrive_and_wait(full);
      } else {
        wait(full, stage.parity);
      }
      multiply_stage(sums, from + group * ROWS * DEPTH * 2, from + A_BYTES, part == 0);
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      release(at.empty + stage.number * 8);
    }
    const u32 row = (tile.m * CLUSTER + rank_in_cluster()) * BLOCK_M + group * ROWS, column = tile.n * BLOCK_N;
    if (BULK_STORE) {
      store_in_bulk(sums, boxes, c_map, row, column, group);
    } else {
      store(sums, c, row, column, n);
    }
  }
  if (BULK_STORE && threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        gemm(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c_map,
             unsigned short* c, u32 m, u32 n, u32 k) {
  extern __shared__ __align__(1024) u8 tiles[];
  __shared__ __align__(8) u64 full[STAGES], empty[STAGES];
  const Barriers at = {shared(full), shared(empty)};
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < STAGES; ++i) {
      make_barrier(at.full + i * 8, TOKENS ? CONSUMERS * 128 + 1 : 1);
      make_barrier(at.empty + i * 8, TOKENS ? CONSUMERS * 128 + 1 : CONSUMERS * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (CLUSTER > 1) {
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  } else {
    __syncthreads();
  }
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce(shared(tiles), at, &a, &b, m, n, k);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume(shared(tiles), at, &c_map, c, m, n, k);
  }
  if (CLUSTER > 1)  // the others may still arrive at this block's barriers
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

#endif
