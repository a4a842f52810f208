// y = epilogue(alpha * sum + beta * y), of stages or of user code: what happens to a convolution's sums on their way to
// memory.
//
// From the prelude: ALPHA and BETA (classes), EPILOGUE (the codes below, in order), EPILOGUE_STAGES (how many of them
// count), TBias, BIAS_STRIDE (elements), BIAS_RUN (neighbours that one access may move), TResidual, TY.
#include "lib/blend.cuh"
#include "lib/index.cuh"
#include "lib/math.cuh"
#include "lib/user_code.cuh"
#include "lib/vector.cuh"

constexpr int STAGE_BIAS = 1;
constexpr int STAGE_ADD = 2;
constexpr int STAGE_RELU = 3;
constexpr int STAGE_CLIP = 4;

__host__ __device__ constexpr bool epilogue_has(int code) {
  for (int i = 0; i < EPILOGUE_STAGES; ++i) {
    if (EPILOGUE[i] == code) return true;
  }
  return false;
}

constexpr bool READS_BIAS = epilogue_has(STAGE_BIAS);
constexpr bool READS_RESIDUAL = epilogue_has(STAGE_ADD);
constexpr bool READS_Y = BETA != SCALE_ZERO;

// The arguments of the call. Pointers that the epilogue does not read may be null.
struct EpilogueArguments {
  const TBias* bias;
  const TResidual* residual;
  float alpha, beta, clip_lo, clip_hi;
  UserArguments user;
};

// The bias of channel k; 0 without one.
__device__ __forceinline__ float bias_of(const EpilogueArguments& arguments, int k) {
  if constexpr (READS_BIAS) {
    return to_float(load_readonly<1>(arguments.bias + static_cast<long long>(k) * BIAS_STRIDE)[0]);
  } else {
    return 0.0f;
  }
}

// Loads the bias of COUNT channels from k on, a multiple of COUNT, if ALONG_K; else that of channel k, COUNT times.
template <bool ALONG_K, int COUNT>
__device__ __forceinline__ void load_bias(float (&bias)[COUNT], const EpilogueArguments& arguments, int k) {
  constexpr int RUN = ALONG_K && READS_BIAS ? smaller<int>(COUNT, BIAS_RUN) : 1;
  if constexpr (RUN > 1) {
#pragma unroll
    for (int i = 0; i < COUNT; i += RUN) {
      const Vector<TBias, RUN> run = load_readonly<RUN>(arguments.bias + (k + i));
#pragma unroll
      for (int j = 0; j < RUN; ++j) bias[i + j] = to_float(run[j]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) bias[i] = bias_of(arguments, ALONG_K ? k + i : k);
  }
}

// The stages from number STAGE on. NaN stays NaN.
template <int STAGE = 0>
__device__ __forceinline__ float staged(float value, float bias, float residual, const EpilogueArguments& arguments) {
  if constexpr (STAGE < EPILOGUE_STAGES) {
    constexpr int CODE = static_cast<int>(EPILOGUE[STAGE]);
    static_assert(CODE >= STAGE_BIAS && CODE <= STAGE_CLIP, "EPILOGUE holds stage codes");
    if constexpr (CODE == STAGE_BIAS) value += bias;
    if constexpr (CODE == STAGE_ADD) value += residual;
    if constexpr (CODE == STAGE_RELU) value = value < 0.0f ? 0.0f : value;
    if constexpr (CODE == STAGE_CLIP) {
      value = value < arguments.clip_lo ? arguments.clip_lo : value;
      value = value > arguments.clip_hi ? arguments.clip_hi : value;
    }
    return staged<STAGE + 1>(value, bias, residual, arguments);
  } else {
    return value;
  }
}

// The new value of an element of channel k from its sum. `old` (y before), `bias`, `residual` and `user` matter only
// where they are read.
__device__ __forceinline__ float finished(float sum, float old, int k, float bias, float residual,
                                          const UserValues& user, const EpilogueArguments& arguments) {
  const float acc = blended<ALPHA, BETA>(sum, arguments.alpha, old, arguments.beta);
  return user_finished(staged(acc, bias, residual, arguments), k, user, arguments.user);
}

// Finishes COUNT sums whose outputs lie side by side from element `offset` of y on, and stores them in one access:
// pixels of channel k, or the channels from k on if ALONG_K. The residual must have the memory order of y.
template <bool ALONG_K, int COUNT, class Index>
__device__ __forceinline__ void finish_run(TY* y, Index offset, const float (&sums)[COUNT], int k,
                                           const EpilogueArguments& arguments) {
  Vector<TY, COUNT> old, result;
  Vector<TResidual, COUNT> residual;
  if constexpr (READS_Y) old = load<COUNT>(y + offset);
  if constexpr (READS_RESIDUAL) residual = load<COUNT>(arguments.residual + offset);
  float bias[COUNT];
  load_bias<ALONG_K>(bias, arguments, k);
  UserValues user[COUNT];
  load_user_run<ALONG_K, TY>(arguments.user, offset, k, user);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const float old_value = READS_Y ? to_float(old[i]) : 0.0f;
    const float residual_value = READS_RESIDUAL ? to_float(residual[i]) : 0.0f;
    const int channel = ALONG_K ? k + i : k;
    result[i] = from_float<TY>(finished(sums[i], old_value, channel, bias[i], residual_value, user[i], arguments));
  }
  store<COUNT>(y + offset, result);
}

// The same where the residual has strides of its own: `residual` is the offset in it.
template <bool ALONG_K, int COUNT, class Index>
__device__ __forceinline__ void finish_run(TY* y, Index offset, Index residual, const float (&sums)[COUNT], int k,
                                           const EpilogueArguments& arguments) {
  EpilogueArguments here = arguments;
  if constexpr (READS_RESIDUAL) here.residual += residual - offset;  // to which the offset in y is added
  finish_run<ALONG_K>(y, offset, sums, k, here);
}
