// Functions that a user's code may call besides CUDA's own (expf, tanhf, fminf, ...): activations by their usual names.
// docs/user-code.md lists them. NaN stays NaN in all of them.

__device__ __forceinline__ float relu(float v) {
  return v < 0.0f ? 0.0f : v;
}
__device__ __forceinline__ float leaky_relu(float v, float slope) {
  return v < 0.0f ? slope * v : v;
}
__device__ __forceinline__ float clamp(float v, float lo, float hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}
// Within 2 units in the last place of the division, of which the rounded one would take twice the instructions.
__device__ __forceinline__ float sigmoid(float v) {
  return __fdividef(1.0f, 1.0f + expf(-v));
}
__device__ __forceinline__ float silu(float v) {
  return v * sigmoid(v);
}
__device__ __forceinline__ float gelu(float v) {
  return 0.5f * v * (1.0f + erff(0.70710678f * v));
}
__device__ __forceinline__ float elu(float v, float a) {
  return v < 0.0f ? a * expm1f(v) : v;
}
__device__ __forceinline__ float softplus(float v) {
  return v > 20.0f ? v : log1pf(expf(v));
}
__device__ __forceinline__ float hard_sigmoid(float v) {
  return clamp(v * (1.0f / 6.0f) + 0.5f, 0.0f, 1.0f);
}
__device__ __forceinline__ float hard_swish(float v) {
  return v * hard_sigmoid(v);
}
