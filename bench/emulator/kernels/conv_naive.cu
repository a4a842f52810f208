// y[k][p][q] = sum over c, r, s of w[k][c][r][s] x[c][p + r - 1][q + s - 1]: 3x3, stride 1, padding 1, batch 1, NCHW.
// One thread computes one output. Grid: (ceil(H W / 128), K), 128 threads. C, H, W, K are constants given by the
// caller.
extern "C" __global__ void conv_naive(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y) {
  const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  const int k = blockIdx.y;
  if (pixel >= H * W) return;
  const int p = pixel / W, q = pixel % W;
  float sum = 0.0f;
  for (int c = 0; c < C; ++c) {
    for (int r = 0; r < 3; ++r) {
      for (int s = 0; s < 3; ++s) {
        const int h = p + r - 1, v = q + s - 1;
        if (h >= 0 && h < H && v >= 0 && v < W) sum += w[((k * C + c) * 3 + r) * 3 + s] * x[(c * H + h) * W + v];
      }
    }
  }
  y[k * H * W + pixel] = sum;
}
