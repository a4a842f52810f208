// Windows seen from the elements under them.

__device__ constexpr long long greatest_common_divisor(long long a, long long b) {
  return b == 0 ? a : greatest_common_divisor(b, a % b);
}

// The output whose window has tap number `tap` at `position`, along one axis; negative if there is none.
__device__ __forceinline__ Index output_of(Index position, Index tap, Index pad, Index stride, Index dilation,
                                           Index outputs) {
  const Index distance = position + pad - tap * dilation;
  if (distance < 0 || distance % stride != 0 || distance / stride >= outputs) return -1;
  return distance / stride;
}

// Taps that meet an output at one position, along an axis of TAPS taps, are so many apart; at most TAPS.
template <long long STRIDE, long long DILATION, long long TAPS>
constexpr Index TAP_STEP = TAPS < STRIDE / greatest_common_divisor(STRIDE, DILATION)
                               ? TAPS
                               : STRIDE / greatest_common_divisor(STRIDE, DILATION);

// The first of them at `position`; TAPS or more where there is none.
template <long long STRIDE, long long DILATION, long long TAPS>
__device__ __forceinline__ Index first_tap_at(Index position, long long pad) {
  if constexpr (STRIDE == 1) {
    return 0;
  } else if constexpr (DILATION == 1) {
    return static_cast<Index>((position + pad) % STRIDE);
  } else {
    for (Index tap = 0; tap < TAP_STEP<STRIDE, DILATION, TAPS>; ++tap) {
      if ((position + pad - tap * DILATION) % STRIDE == 0) return tap;
    }
    return TAPS;
  }
}

// The outputs along one axis whose windows may hold a position.
struct Holders {
  Index first, last;

  __device__ __forceinline__ Holders(Index position, Index pad, Index window, Index dilation, Index stride,
                                     Index outputs) {
    const Index reach = position + pad - (window - 1) * dilation;
    first = reach <= 0 ? 0 : (reach + stride - 1) / stride;
    last = smaller<Index>(outputs - 1, (position + pad) / stride);
  }
};
