// The same convolution in f16 on tensor cores, channels last: y[pixel][k] = sum over taps rs and channels c of
// x[pixel moved by rs][c] w[k][rs][c], summed in f32. A block of 2 x 2 warps computes 128 pixels x 64 output channels,
// a warp 64 x 32 of them. Grid: (ceil(H W / 128), K / 64). K % 64 == 0, C % 32 == 0.
//
// A step is 32 channels of one tap. Its tiles are copied two steps ahead by cp.async in pieces of 16 bytes, three
// stages in turn; pieces outside the image are filled with zeros. A row of a stage is four pieces, whose places change
// with the row so that the eight rows of an 8 x 8 matrix, and the eight threads that copy two rows, meet no bank twice.
typedef unsigned short Half;
constexpr int BLOCK_M = 128, BLOCK_N = 64, BLOCK_K = 32, STAGES = 3, THREADS = 128;
constexpr int WARP_M = 64, WARP_N = 32, PIECE = 8, PIECES = BLOCK_K / PIECE;  // of 8 halves
constexpr int STAGE_BYTES = (BLOCK_M + BLOCK_N) * BLOCK_K * 2;
constexpr int TAPS = 9, STEPS = TAPS * C / BLOCK_K;
constexpr int M_COPIES = BLOCK_M * PIECES / THREADS, N_COPIES = BLOCK_N * PIECES / THREADS;

__device__ unsigned offset_of(int row, int piece) {
  return (row * PIECES + (piece ^ (row / 2 % PIECES))) * 16;
}

__device__ void copy_piece(unsigned to, const Half* from, unsigned source_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(source_bytes) : "memory");
}

__device__ void load_matrices(unsigned (&d)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(at)
               : "memory");
}

__device__ void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ unsigned pair_of_halves(float low, float high) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_mma_f16(const Half* __restrict__ x, const Half* __restrict__ w, Half* __restrict__ y) {
  __shared__ __align__(128) unsigned char stages[STAGES * STAGE_BYTES];
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(stages));
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_pixel = blockIdx.x * BLOCK_M, first_k = blockIdx.y * BLOCK_N;

  // The rows that this thread copies: where they are at the first tap, which may be outside, and 16 times a bit for
  // each tap inside the image.
  const int row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
  const unsigned target = shared + offset_of(row, piece);  // of the first; 32 rows further the swizzle is the same
  const Half* x_from[M_COPIES];
  unsigned inside[M_COPIES];
#pragma unroll
  for (int i = 0; i < M_COPIES; ++i) {
    const int pixel = first_pixel + row + i * (THREADS / PIECES), p = pixel / W, q = pixel % W;
    x_from[i] = x + (pixel - W - 1) * C + piece * PIECE;
    inside[i] = 0;
#pragma unroll
    for (int rs = 0; rs < TAPS; ++rs) {
      const int h = p + rs / 3 - 1, v = q + rs % 3 - 1;
      if (pixel < H * W && h >= 0 && h < H && v >= 0 && v < W) inside[i] |= 16u << rs;
    }
  }
  const Half* w_from = w + (first_k + row) * TAPS * C + piece * PIECE;

  // Copies the next step's tiles, and counts on: taps in the innermost loop.
  int tap = 0, column = 0, copied = 0;
  long long x_delta = 0, w_delta = 0;
  unsigned to = target;
  const auto copy_step = [&] {
    if (copied < STEPS) {
#pragma unroll
      for (int i = 0; i < M_COPIES; ++i) {
        copy_piece(to + i * THREADS * 16, x_from[i] + x_delta, inside[i] >> tap & 16);
      }
#pragma unroll
      for (int i = 0; i < N_COPIES; ++i) {
        copy_piece(to + BLOCK_M * BLOCK_K * 2 + i * THREADS * 16, w_from + w_delta + i * (THREADS / PIECES) * TAPS * C,
                   16);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    ++copied;
    to = to == target + (STAGES - 1) * STAGE_BYTES ? target : to + STAGE_BYTES;
    ++tap, ++column, x_delta += C, w_delta += C;
    if (column == 3) column = 0, x_delta += (W - 3) * C;
    if (tap == TAPS) tap = 0, x_delta += BLOCK_K - 3 * W * C, w_delta += BLOCK_K - TAPS * C;
  };

  const int warp_m = warp / 2 * WARP_M, warp_n = warp % 2 * WARP_N;
  float sum[WARP_M / 16][WARP_N / 8][4] = {};
  copy_step();
  copy_step();
  unsigned stage = shared;
#pragma unroll 1
  for (int step = 0; step < STEPS; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    copy_step();
#pragma unroll
    for (int inner = 0; inner < PIECES; inner += 2) {
      unsigned a[WARP_M / 16][4], b[WARP_N / 16][4];
#pragma unroll
      for (int i = 0; i < WARP_M / 16; ++i) {
        load_matrices(a[i], stage + offset_of(warp_m + i * 16 + lane % 16, inner + lane / 16));
      }
#pragma unroll
      for (int j = 0; j < WARP_N / 16; ++j) {
        load_matrices(b[j], stage + BLOCK_M * BLOCK_K * 2 +
                                offset_of(warp_n + j * 16 + lane / 16 * 8 + lane % 8, inner + lane / 8 % 2));
      }
#pragma unroll
      for (int i = 0; i < WARP_M / 16; ++i) {
#pragma unroll
        for (int j = 0; j < WARP_N / 8; ++j)
          multiply_add(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
    stage = stage == shared + (STAGES - 1) * STAGE_BYTES ? shared : stage + STAGE_BYTES;
  }

  unsigned* const y_pairs = reinterpret_cast<unsigned*>(y);
#pragma unroll
  for (int i = 0; i < WARP_M / 16; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pixel = first_pixel + warp_m + i * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int j = 0; j < WARP_N / 8; ++j) {
        const int k = first_k + warp_n + j * 8 + lane % 4 * 2;
        if (pixel < H * W) y_pairs[(pixel * K + k) / 2] = pair_of_halves(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
      }
    }
  }
}
