// What a user's prologue makes of each element of x, for the check: x = prologue(input), and how far it moves where
// input moves by two units in the last place, as the roundings inside the code may: wobble.
//
// input, x and wobble hold one f32 for each element of x, in logical order. wobble is infinite where the prologue gives
// a number on one side and none on the other.
#include "lib/index.cuh"
#include "lib/math.cuh"
#include "lib/user_code.cuh"

constexpr float UNITS = 2.384185791015625e-7f;  // 2^-22

extern "C" __global__ void __launch_bounds__(THREADS)
    user_prologue(const float* input, float* x, float* wobble, UserArguments user) {
  const long long element = global_thread<THREADS, long long>();
  if (element >= ELEMENTS) return;
  const int channel = static_cast<int>(element / INNER % CHANNELS);
  const float value = user_entered(input[element], channel, user);
  x[element] = value;
  float most = 0.0f;
  for (int sign = -1; USER_PROLOGUE && sign <= 1; sign += 2) {
    const float nearby = user_entered(input[element] * (1.0f + static_cast<float>(sign) * UNITS), channel, user);
    if (is_nan(nearby) && is_nan(value)) continue;
    if (nearby == value) continue;  // also infinities
    const float distance = fabsf(nearby - value);
    most = distance <= most ? most : is_nan(distance) ? infinity() : distance;
  }
  wobble[element] = most;
}
