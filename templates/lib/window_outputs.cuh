// Windows seen from the elements under them.

// The output whose window has tap number `tap` at `position`, along one axis; negative if there is none.
__device__ __forceinline__ Index output_of(Index position, Index tap, Index pad, Index stride, Index dilation,
                                           Index outputs) {
  const Index distance = position + pad - tap * dilation;
  if (distance < 0 || distance % stride != 0 || distance / stride >= outputs) return -1;
  return distance / stride;
}
