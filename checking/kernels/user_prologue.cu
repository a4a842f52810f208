// Result of a user's prologue for each element of x, for the check: x = prologue(input), and how far it moves where
// input, or all of its tensors, move by two units in the last place, as the roundings inside the code may:
// perturbation.
//
// input, x and perturbation hold one f32 for each element of x, in logical order; the tensors are as the request has
// them. perturbation is infinite where the prologue gives a number on one side and none on the other.
#include "lib/index.cuh"
#include "lib/math.cuh"
#include "lib/user_code.cuh"

constexpr float UNITS = 2.384185791015625e-7f;  // 2^-22

extern "C" __global__ void __launch_bounds__(THREADS)
    user_prologue(const float* input, float* x, float* perturbation, UserArguments user) {
  const long long element = global_thread<THREADS, long long>();
  if (element >= ELEMENTS) return;
  const int channel = static_cast<int>(element / INNER % CHANNELS);
  const float value = user_entered(input[element], channel, user);
  x[element] = value;
  PrologueValues values[1];
  load_prologue_run(user, channel, values);
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
  perturbation[element] = most;
}
