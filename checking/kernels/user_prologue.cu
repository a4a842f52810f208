// Result of a user's prologue for each element of x, for the check: x = prologue(input), and how far it moves where
// input, or all of its tensors, move by two units in the last place, as the roundings inside the code may:
// perturbation.
//
// input, x and perturbation hold one f32 for each element of x, in logical order; the tensors are as the request has
// them. perturbation is infinite where the prologue gives a number on one side and none on the other. If results are
// rounded, x is, and perturbation says how far four times the move before that moves what is rounded.
#include "lib/index.cuh"
#include "lib/math.cuh"
#include "lib/user_code.cuh"

constexpr float UNITS = 2.384185791015625e-7f;  // 2^-22

// How far value, rounded, moves where value moves by `distance`. Infinities stay where they are.
__device__ __forceinline__ float move_of_rounded(float value, float distance) {
  const auto rounded = [](float x) { return to_float(from_float<UserInput>(x)); };
  if (is_nan(value) || distance == 0.0f) return 0.0f;
  const float middle = rounded(value), low = rounded(value - distance), high = rounded(value + distance);
  const float below = low == middle ? 0.0f : middle - low, above = high == middle ? 0.0f : high - middle;
  return is_nan(below) || is_nan(above) ? infinity() : below < above ? above : below;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    user_prologue(const float* input, float* x, float* perturbation, UserArguments user) {
  const long long element = global_thread<THREADS, long long>();
  if (element >= ELEMENTS) return;
  const int channel = static_cast<int>(element / INNER % CHANNELS);
  const PrologueIndex at(channel, USER_OF_IMAGES ? static_cast<int>(element / INNER / CHANNELS) : 0);
  x[element] = user_entered(input[element], at, user);
  PrologueValues values[1];
  load_prologue_run(user, at, values);
  const float value = USER_PROLOGUE ? user_code::prologue(input[element], channel, values[0], user.scalars) : 0.0f;
  float most = 0.0f;
#pragma unroll 1
  for (int i = 0; USER_PROLOGUE && i < (USER_PROLOGUE_TENSORS == 0 ? 2 : 4); ++i) {
    const float factor = i % 2 == 0 ? 1.0f - UNITS : 1.0f + UNITS;
    PrologueValues moved = values[0];
#pragma unroll
    for (int j = 0; j < USER_PROLOGUE_TENSORS; ++j) moved.tensors[j] *= i < 2 ? 1.0f : factor;
    const float nearby = user_code::prologue(input[element] * (i < 2 ? factor : 1.0f), channel, moved, user.scalars);
    if (is_nan(nearby) && is_nan(value)) continue;
    if (nearby == value) continue;  // also infinities
    const float distance = fabsf(nearby - value);
    most = distance <= most ? most : is_nan(distance) ? infinity() : distance;
  }
  if constexpr (USER_ROUNDS) most = move_of_rounded(value, 4.0f * most);
  perturbation[element] = most;
}
