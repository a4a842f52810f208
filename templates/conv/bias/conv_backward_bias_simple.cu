// db[k] = epilogue(alpha * (sum over n,z,p,q of dy[n,k,z,p,q]) + beta * db[k]), a thread a channel. Any strides. With
// alpha of class zero nothing is summed. Parameters: conv_backward_bias_simple.cpp.
#include "lib/bias_gradient.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_bias_simple(const TDY* dy, TDB* db, float alpha, float beta, UserArguments user, long long n) {
  const Index k = global_thread<THREADS, Index>();
  if (k >= K) return;
  float sum = 0.0f;
  if constexpr (ALPHA != SCALE_ZERO) {
    for (Index image = 0; image < (DYNAMIC_N ? static_cast<Index>(n) : Index(N)); ++image) {
      for (Index z = 0; z < Z; ++z) {
        for (Index p = 0; p < P; ++p) {
          for (Index q = 0; q < Q; ++q) {
            sum += user_entered(dy[Gradient::at(image, k, z, p, q)], static_cast<int>(k), user);
          }
        }
      }
    }
  }
  finish_channel(db, k, sum, {alpha, beta, user});
}
