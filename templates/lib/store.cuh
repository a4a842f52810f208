// Storing results: blended with what is there, then through the user's epilogue.
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
template <bool ALONG_CHANNEL, class T, int COUNT, class Index>
__device__ __forceinline__ void store_run(T* y, Index offset, const float (&results)[COUNT], int channel,
                                          const OutputArguments& output) {
  Vector<T, COUNT> result;
  if constexpr (BETA != SCALE_ZERO) result = load<COUNT>(y + offset);
  UserValues user[COUNT];
  load_user_run<ALONG_CHANNEL, T>(output.user, offset, channel, user);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    float old = 0.0f;
    if constexpr (BETA != SCALE_ZERO) old = to_float(result[i]);
    result[i] = from_float<T>(stored_value(results[i], old, ALONG_CHANNEL ? channel + i : channel, user[i], output));
  }
  store<COUNT>(y + offset, result);
}

// Stores one result at element `offset` of y.
template <class T, class Index>
__device__ __forceinline__ void store_result(T* y, Index offset, float result, int channel,
                                             const OutputArguments& output) {
  const float results[] = {result};
  store_run<false>(y, offset, results, channel, output);
}

// The same the plain way, for trusted kernels: `target` is element number `number` of y in logical order.
template <class T>
__device__ __forceinline__ void store_element(T* target, long long number, float result, int channel,
                                              const OutputArguments& output) {
  float old = 0.0f;
  if constexpr (BETA != SCALE_ZERO) old = to_float(*target);
  UserValues values;
  load_user_element(output.user, number, values);
  *target = from_float<T>(stored_value(result, old, channel, values, output));
}

// Stores COUNT results, STEP elements apart from element `offset` of y on, in accesses of RUN: where no channels are
// known.
template <int RUN, const auto& STEP, class T, int COUNT, class Index>
__device__ __forceinline__ void store_along(T* y, Index offset, const float (&results)[COUNT],
                                            const OutputArguments& output) {
#pragma unroll
  for (int i = 0; i < COUNT; i += RUN) {
    float run[RUN];
#pragma unroll
    for (int j = 0; j < RUN; ++j) run[j] = results[i + j];
    store_run<false>(y, offset + i * Index(STEP), run, 0, output);
  }
}

// The same of the first `left` results, where there may be fewer than COUNT.
template <int RUN, const auto& STEP, class T, int COUNT, class Index>
__device__ __forceinline__ void store_some_along(T* y, Index offset, int left, const float (&results)[COUNT],
                                                 const OutputArguments& output) {
  if (left >= COUNT) return store_along<RUN, STEP>(y, offset, results, output);
#pragma unroll
  for (int i = 0; i < COUNT - 1; ++i) {
    if (i < left) store_result(y, offset + i * Index(STEP), results[i], 0, output);
  }
}

// Applies the user's epilogue to COUNT results, where no channels are known: for kernels that blend and store
// themselves. The results stand STEP elements apart from element `offset` of y on, and are stored in accesses of RUN.
template <class T, int RUN, const auto& STEP, int COUNT, class Index>
__device__ __forceinline__ void finish_along(Index offset, float (&results)[COUNT], const UserArguments& user) {
#pragma unroll
  for (int i = 0; USER_EPILOGUE && i < COUNT; i += RUN) {
    UserValues values[RUN];
    load_user_run<false, T>(user, offset + i * Index(STEP), 0, values);
#pragma unroll
    for (int j = 0; j < RUN; ++j) results[i + j] = user_finished(results[i + j], 0, values[j], user);
  }
}
