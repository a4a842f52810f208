// Winograd's minimal filtering F(m x m, 3x3): the transforms. A. Lavin and S. Gray, *Fast Algorithms for Convolutional
// Neural Networks*, arXiv:1509.09308 (2015), sections 4.1 and 4.3.
//
// A tile of m x m outputs of a 3x3 convolution with unit stride, from its patch d of (m + 2) x (m + 2) inputs and the
// filter g, over the channels c:
//
//   Y = A^T [ sum over c of (G g G^T) . (B^T d B) ] A          (. multiplies element by element)
//
// which takes (m + 2)^2 products a channel where the definition takes 9 m^2: 16 instead of 36, 36 instead of 144.
//
// F(2x2)  A^T = 1  1  1  0     G =  1    0    0     B^T = 1  0 -1  0
//               0  1 -1 -1         1/2  1/2  1/2          0  1  1  0
//                                  1/2 -1/2  1/2          0 -1  1  0
//                                   0    0    1           0  1  0 -1
//
// F(4x4)  A^T = 1  1  1  1  1  0     G =  1/4   0    0     B^T = 4  0 -5  0  1  0
//               0  1 -1  2 -2  0         -1/6 -1/6 -1/6          0 -4 -4  1  1  0
//               0  1  1  4  4  0         -1/6  1/6 -1/6          0  4 -4 -1  1  0
//               0  1 -1  8 -8  1         1/24 1/12  1/6          0 -2 -1  2  1  0
//                                        1/24 -1/12 1/6          0  2 -1 -2  1  0
//                                          0    0    1           0  4  0 -5  0  1
//
// Kernels compute with SCALE * G, SCALE = 2 or 24, of integers, and divide the outputs by SCALE^2. So nothing that is
// small underflows in the filters, and where all sums are exact, results are: the division rounds correctly.
// docs/numerics.md bounds the error.
#include "lib/vector.cuh"

// One-dimensional transforms of F(m, 3). On its way through one of input, filter and output a term is rounded at most
// 1, 2 and 2 times if m = 2, and 2, 2 and 3 times if m = 4.
template <int M>
struct Winograd;

template <>
struct Winograd<2> {
  // B^T d
  __device__ __forceinline__ static void input(const float (&d)[4], float (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
  }
  // SCALE G g
  __device__ __forceinline__ static void filter(const float (&g)[3], float (&u)[4]) {
    const float outer = g[0] + g[2];
    u[0] = 2.0f * g[0];
    u[1] = outer + g[1];
    u[2] = outer - g[1];
    u[3] = 2.0f * g[2];
  }
  // A^T m
  __device__ __forceinline__ static void output(const float (&m)[4], float (&y)[2]) {
    y[0] = m[0] + (m[1] + m[2]);
    y[1] = (m[1] - m[2]) - m[3];
  }
  // y / SCALE^2
  __device__ __forceinline__ static float unscaled(float y) { return 0.25f * y; }
};

template <>
struct Winograd<4> {
  __device__ __forceinline__ static void input(const float (&d)[6], float (&v)[6]) {
    const float even = fmaf(-4.0f, d[2], d[4]), odd = fmaf(-4.0f, d[1], d[3]);
    const float near = d[4] - d[2], far = 2.0f * (d[3] - d[1]);
    v[0] = fmaf(4.0f, d[0], fmaf(-5.0f, d[2], d[4]));
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = near + far;
    v[4] = near - far;
    v[5] = fmaf(4.0f, d[1], fmaf(-5.0f, d[3], d[5]));
  }
  __device__ __forceinline__ static void filter(const float (&g)[3], float (&u)[6]) {
    const float outer = g[0] + g[2], wide = fmaf(4.0f, g[2], g[0]);
    u[0] = 6.0f * g[0];
    u[1] = -4.0f * (outer + g[1]);
    u[2] = -4.0f * (outer - g[1]);
    u[3] = fmaf(2.0f, g[1], wide);
    u[4] = fmaf(-2.0f, g[1], wide);
    u[5] = 24.0f * g[2];
  }
  __device__ __forceinline__ static void output(const float (&m)[6], float (&y)[4]) {
    const float sum = m[1] + m[2], difference = m[1] - m[2];
    const float far_sum = m[3] + m[4], far_difference = m[3] - m[4];
    y[0] = m[0] + (sum + far_sum);
    y[1] = fmaf(2.0f, far_difference, difference);
    y[2] = fmaf(4.0f, far_sum, sum);
    y[3] = fmaf(8.0f, far_difference, difference) + m[5];
  }
  // Rounds correctly, as a division would: P. W. Markstein, *Computation of elementary functions on the IBM RISC
  // System/6000 processor*, IBM J. Res. Dev. 34 (1990), theorem 8.5.
  __device__ __forceinline__ static float unscaled(float y) {
    constexpr float RECIPROCAL = 1.0f / 576.0f;
    const float guess = y * RECIPROCAL;
    return fmaf(fmaf(-576.0f, guess, y), RECIPROCAL, guess);
  }
};

// Both dimensions of a transform TO x FROM: f in * f^T.
template <int FROM, int TO, class Transform>
__device__ __forceinline__ void transform_both(const float (&in)[FROM][FROM], float (&out)[TO][TO], Transform f) {
  float half[TO][FROM];
#pragma unroll
  for (int j = 0; j < FROM; ++j) {
    float column[FROM], result[TO];
#pragma unroll
    for (int i = 0; i < FROM; ++i) column[i] = in[i][j];
    f(column, result);
#pragma unroll
    for (int i = 0; i < TO; ++i) half[i][j] = result[i];
  }
#pragma unroll
  for (int i = 0; i < TO; ++i) f(half[i], out[i]);
}

// B^T d B
template <int M>
__device__ __forceinline__ void transform_input(const float (&d)[M + 2][M + 2], float (&v)[M + 2][M + 2]) {
  transform_both(d, v, [](const float(&from)[M + 2], float(&to)[M + 2]) { Winograd<M>::input(from, to); });
}

// SCALE^2 G g G^T
template <int M>
__device__ __forceinline__ void transform_filter(const float (&g)[3][3], float (&u)[M + 2][M + 2]) {
  transform_both(g, u, [](const float(&from)[3], float(&to)[M + 2]) { Winograd<M>::filter(from, to); });
}

// A^T m A / SCALE^2
template <int M>
__device__ __forceinline__ void transform_output(const float (&m)[M + 2][M + 2], float (&y)[M][M]) {
  transform_both(m, y, [](const float(&from)[M + 2], float(&to)[M]) { Winograd<M>::output(from, to); });
#pragma unroll
  for (int i = 0; i < M; ++i) {
#pragma unroll
    for (int j = 0; j < M; ++j) y[i][j] = Winograd<M>::unscaled(y[i][j]);
  }
}
