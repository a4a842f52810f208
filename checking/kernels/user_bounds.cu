// Range of values that a user's epilogue may give for each element, if its argument may be off by so much: the check's
// side of it.
//
// acc, margin, low, high and the user's tensors hold one f32 for each element of y, in logical order. A right kernel's
// argument lies within acc -/+ margin, and its roundings inside the user's code may differ from those here. Both are
// felt for with the code itself: it is evaluated at acc, at acc -/+ margin and halfway, and with its tensors moved by
// two units in the last place. The bounds are the extremes of that, widened by as much again on either side. NaN in
// both: NaN is right. low above high: anything is, because the code is not continuous there or acc is not known.
#include "lib/index.cuh"
#include "lib/math.cuh"
#include "lib/user_code.cuh"

constexpr float UNITS = 2.384185791015625e-7f;  // 2^-22: two units in the last place of an f32, or four

struct Extremes {
  float low = infinity(), high = -infinity();
  int numbers = 0, others = 0;

  __device__ __forceinline__ void add(float value) {
    if (is_nan(value)) {
      ++others;
      return;
    }
    ++numbers;
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
};

// `value` moved by `by` and its own roundings; infinities stay.
__device__ __forceinline__ float moved(float value, float direction, float by) {
  return value - value != 0.0f ? value : value + direction * (by + fabsf(value) * UNITS);
}

template <int I = 0>
__device__ __forceinline__ void load_user_f32(const UserArguments& user, long long element, UserValues& values) {
  if constexpr (I < USER_TENSORS) {
    values.tensors[I] = static_cast<const float*>(user.tensors[I])[element];
    load_user_f32<I + 1>(user, element, values);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    user_bounds(const float* acc, const float* margin, float* low, float* high, UserArguments user) {
  const long long element = global_thread<THREADS, long long>();
  if (element >= ELEMENTS) return;
  const int channel = static_cast<int>(element / INNER % CHANNELS);
  const float center = acc[element], known = margin[element];
  const float step = is_nan(center) || center - center != 0.0f ? 0.0f : known + fabsf(center) * UNITS;
  UserValues values;
  load_user_f32(user, element, values);

  Extremes seen;
#pragma unroll 1
  for (int i = -2; i <= 2; ++i) {
    seen.add(user_code::epilogue(center + 0.5f * static_cast<float>(i) * step, channel, values, user.scalars));
  }
#pragma unroll 1
  for (int sign = -1; sign <= 1; sign += 2) {
    UserValues nearby = values;
#pragma unroll
    for (int i = 0; i < USER_TENSORS; ++i) nearby.tensors[i] *= 1.0f + static_cast<float>(sign) * UNITS;
    seen.add(user_code::epilogue(center, channel, nearby, user.scalars));
  }

  const bool open = known - known != 0.0f || (seen.numbers > 0 && seen.others > 0);
  const float spread = seen.high > seen.low ? seen.high - seen.low : 0.0f;
  if (open) {
    low[element] = infinity();
    high[element] = -infinity();
  } else if (seen.numbers == 0) {
    low[element] = high[element] = nan();
  } else {
    low[element] = moved(seen.low, -1.0f, spread);
    high[element] = moved(seen.high, 1.0f, spread);
  }
}
