// The same convolution as an implicit matrix product: y[k][pixel] = sum over taps rs and channels c of
// w[k][c][rs] x[c][pixel moved by rs]. A block of 128 threads computes 64 output channels x 128 pixels, a thread 8 x 8
// of them, tap by tap in steps of 8 channels. Grid: (ceil(H W / 128), K / 64). K % 64 == 0, C % 8 == 0.
constexpr int BLOCK_M = 64, BLOCK_N = 128, BLOCK_K = 8, THREADS = 128;

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_simt_8x8(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y) {
  __shared__ __align__(16) float a_tile[BLOCK_K][BLOCK_M];
  __shared__ __align__(16) float b_tile[BLOCK_K][BLOCK_N];
  const int thread = threadIdx.x;
  const int row = thread / 16 * 8, column = thread % 16 * 4;
  const int first_k = blockIdx.y * BLOCK_M;
  // Every thread loads one pixel's column of the one tile, and half a channel's row of the other.
  const int pixel = blockIdx.x * BLOCK_N + thread;
  const int p = pixel / W, q = pixel % W;
  const int filter = (first_k + thread % BLOCK_M) * C * 9;
  float sum[8][8] = {};
  for (int rs = 0; rs < 9; ++rs) {
    const int h = p + rs / 3 - 1, v = q + rs % 3 - 1;
    const bool inside = pixel < H * W && h >= 0 && h < H && v >= 0 && v < W;
    for (int c0 = 0; c0 < C; c0 += BLOCK_K) {
#pragma unroll
      for (int i = 0; i < BLOCK_K / 2; ++i) {
        const int kk = 2 * i + thread / BLOCK_M;
        a_tile[kk][thread % BLOCK_M] = w[filter + (c0 + kk) * 9 + rs];
      }
#pragma unroll
      for (int kk = 0; kk < BLOCK_K; ++kk) b_tile[kk][thread] = inside ? x[((c0 + kk) * H + h) * W + v] : 0.0f;
      __syncthreads();
#pragma unroll
      for (int kk = 0; kk < BLOCK_K; ++kk) {
        float a[8], b[8];
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
          *reinterpret_cast<float4*>(a + i) = *reinterpret_cast<const float4*>(&a_tile[kk][row + i]);
          *reinterpret_cast<float4*>(b + i) = *reinterpret_cast<const float4*>(&b_tile[kk][column + 16 * i]);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
          for (int j = 0; j < 8; ++j) sum[i][j] += a[i] * b[j];
        }
      }
      __syncthreads();
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int out = blockIdx.x * BLOCK_N + column + (j < 4 ? j : 60 + j);
      if (out < H * W) y[(first_k + row + i) * H * W + out] = sum[i][j];
    }
  }
}
