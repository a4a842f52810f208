// Storing results of pooling and softmax: blended with what is there, then through the user's epilogue.
#include "lib/blend.cuh"
#include "lib/user_code.cuh"
#include "lib/vector.cuh"

// The arguments of the call.
struct OutputArguments {
  float alpha, beta;
  UserArguments user;
};

// The new value of an element from its result. `old` (y before) and `values` matter only where they are read.
__device__ __forceinline__ float stored_value(float result, float old, int channel, const UserValues& values,
                                              const OutputArguments& output) {
  return user_finished(blended<ALPHA, BETA>(result, output.alpha, old, output.beta), channel, values, output.user);
}

// Stores COUNT results whose elements lie side by side from element `offset` of y on, in one access: of channel
// `channel`, or of the channels from it on if ALONG_CHANNEL.
template <bool ALONG_CHANNEL, int COUNT, class Index>
__device__ __forceinline__ void store_run(TY* y, Index offset, const float (&results)[COUNT], int channel,
                                          const OutputArguments& output) {
  Vector<TY, COUNT> result;
  if constexpr (BETA != SCALE_ZERO) result = load<COUNT>(y + offset);
  UserValues user[COUNT];
  load_user_run<ALONG_CHANNEL, TY>(output.user, offset, channel, user);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    float old = 0.0f;
    if constexpr (BETA != SCALE_ZERO) old = to_float(result[i]);
    result[i] = from_float<TY>(stored_value(results[i], old, ALONG_CHANNEL ? channel + i : channel, user[i], output));
  }
  store<COUNT>(y + offset, result);
}
