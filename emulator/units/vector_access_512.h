// Short cuts for memory accesses with AVX-512. They look at the lanes' addresses in vector registers and take the
// patterns that kernels use; whatever does not fit is left to vector_access.h. Any mask of lanes will do.
#pragma once

#ifdef __AVX512F__

#include <immintrin.h>

#include <cstring>

#include "lanes.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

inline __mmask16 low_half(Mask mask) {
  return static_cast<__mmask16>(mask);
}
inline __mmask16 high_half(Mask mask) {
  return static_cast<__mmask16>(mask >> 16);
}

/// Lanes in `mask` take what stands at from + lane.
template <class E>
inline void copy_in(E* to, const std::byte* from, Mask mask) {
  if constexpr (sizeof(E) == 2) {
    _mm512_mask_storeu_epi16(to, mask, _mm512_maskz_loadu_epi16(mask, from));
  } else if constexpr (sizeof(E) == 4) {
    _mm512_mask_storeu_epi32(to, low_half(mask), _mm512_maskz_loadu_epi32(low_half(mask), from));
    _mm512_mask_storeu_epi32(to + 16, high_half(mask), _mm512_maskz_loadu_epi32(high_half(mask), from + 64));
  } else {
    for (int k = 0; k < 4; ++k) {
      const auto part = static_cast<__mmask8>(mask >> (8 * k));
      _mm512_mask_storeu_epi64(to + 8 * k, part, _mm512_maskz_loadu_epi64(part, from + 64 * k));
    }
  }
}

template <class E>
inline void copy_out(std::byte* to, const E* from, Mask mask) {
  if constexpr (sizeof(E) == 2) {
    _mm512_mask_storeu_epi16(to, mask, _mm512_loadu_si512(from));
  } else if constexpr (sizeof(E) == 4) {
    _mm512_mask_storeu_epi32(to, low_half(mask), _mm512_loadu_si512(from));
    _mm512_mask_storeu_epi32(to + 64, high_half(mask), _mm512_loadu_si512(from + 16));
  } else {
    for (int k = 0; k < 4; ++k) {
      _mm512_mask_storeu_epi64(to + 64 * k, static_cast<__mmask8>(mask >> (8 * k)), _mm512_loadu_si512(from + 8 * k));
    }
  }
}

/// Lanes in `mask` whose 64-bit address is not first + lane * stride.
inline Mask off_line(const uint64_t* a, uint64_t first, int stride, Mask mask) {
  const __m512i step = _mm512_set1_epi64(8 * stride);
  __m512i expected =
      _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(first)),
                       _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(stride)));
  Mask wrong = 0;
  for (int k = 0; k < 4; ++k) {
    wrong |= static_cast<Mask>(_mm512_cmpneq_epi64_mask(_mm512_loadu_si512(a + 8 * k), expected)) << (8 * k);
    expected = _mm512_add_epi64(expected, step);
  }
  return wrong & mask;
}

/// The lanes' offsets into shared memory.
struct SharedOffsets {
  __m512i low, high;
};

inline SharedOffsets shared_offsets(const uint32_t* a, int64_t displacement) {
  const __m512i d = _mm512_set1_epi32(static_cast<int>(displacement));
  return {_mm512_add_epi32(_mm512_loadu_si512(a), d), _mm512_add_epi32(_mm512_loadu_si512(a + 16), d)};
}

inline SharedOffsets shared_offsets(const uint64_t* a, int64_t displacement) {
  const auto half = [](const uint64_t* at) {
    const __m256i first = _mm512_cvtepi64_epi32(_mm512_loadu_si512(at));
    const __m256i second = _mm512_cvtepi64_epi32(_mm512_loadu_si512(at + 8));
    return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
  };
  const __m512i d = _mm512_set1_epi32(static_cast<int>(displacement));
  return {_mm512_add_epi32(half(a), d), _mm512_add_epi32(half(a + 16), d)};
}

/// Masked lanes take the offset `instead`.
inline SharedOffsets only(const SharedOffsets& at, Mask mask, uint32_t instead) {
  const __m512i other = _mm512_set1_epi32(static_cast<int>(instead));
  return {_mm512_mask_mov_epi32(other, low_half(mask), at.low), _mm512_mask_mov_epi32(other, high_half(mask), at.high)};
}

inline Mask off_line(const SharedOffsets& at, uint32_t first, int stride, Mask mask) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i low =
      _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)), _mm512_mullo_epi32(lane, _mm512_set1_epi32(stride)));
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(16 * stride));
  const Mask wrong = static_cast<Mask>(_mm512_cmpneq_epi32_mask(at.low, low)) |
                     static_cast<Mask>(_mm512_cmpneq_epi32_mask(at.high, high)) << 16;
  return wrong & mask;
}

/// Whether every lane's `bytes` lie in the `window` bytes from `base` on, at a multiple of 4 from there.
inline bool fits(const SharedOffsets& at, uint32_t base, int window, int bytes) {
  const __m512i start = _mm512_set1_epi32(static_cast<int>(base));
  const __m512i low = _mm512_sub_epi32(at.low, start), high = _mm512_sub_epi32(at.high, start);
  const __m512i last = _mm512_set1_epi32(window - bytes);
  const __mmask16 beyond = _mm512_cmpgt_epu32_mask(_mm512_max_epu32(low, high), last);
  return (beyond | _mm512_test_epi32_mask(_mm512_or_si512(low, high), _mm512_set1_epi32(3))) == 0;
}

/// Picks the lanes' words from a window of 128 (`wide`: 256) bytes.
template <int elements, bool wide>
inline void permute_window(const std::byte* window, uint32_t base, const SharedOffsets& at, Mask mask,
                           std::byte* registers, const uint32_t* to) {
  const auto* const words = reinterpret_cast<const int*>(window);
  const __m512i w0 = _mm512_loadu_si512(words), w1 = _mm512_loadu_si512(words + 16);
  __m512i w2{}, w3{};
  if constexpr (wide) w2 = _mm512_loadu_si512(words + 32), w3 = _mm512_loadu_si512(words + 48);
  const __m512i start = _mm512_set1_epi32(static_cast<int>(base));
  const __m512i low = _mm512_srli_epi32(_mm512_sub_epi32(at.low, start), 2);
  const __m512i high = _mm512_srli_epi32(_mm512_sub_epi32(at.high, start), 2);
  const auto pick = [&](__m512i first, int k) {
    const __m512i index = _mm512_add_epi32(first, _mm512_set1_epi32(k));
    const __m512i below = _mm512_permutex2var_epi32(w0, index, w1);
    if constexpr (!wide) return below;
    return _mm512_mask_blend_epi32(_mm512_test_epi32_mask(index, _mm512_set1_epi32(32)), below,
                                   _mm512_permutex2var_epi32(w2, index, w3));
  };
#pragma GCC unroll 4
  for (int k = 0; k < elements; ++k) {
    std::byte* const d = registers + to[k];
    _mm512_mask_storeu_epi32(d, low_half(mask), pick(low, k));
    _mm512_mask_storeu_epi32(d + 64, high_half(mask), pick(high, k));
  }
}

/// Loads words from shared memory into the registers at `to` (byte offsets). Where the lanes fall into a window of 256
/// bytes, the window is loaded once and permuted, whatever the pattern: broadcast, row, the quads of a warp's tile. It
/// may reach beyond the end of shared memory, which is padded for it. False, and nothing done, without a window.
template <int elements>
inline bool load_window(const std::byte* shared, SharedOffsets at, Mask mask, std::byte* registers,
                        const uint32_t* to) {
  constexpr int bytes = 4 * elements;
  auto base = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(at.low)));
  if (mask != full_mask) {
    alignas(64) uint32_t all[32];
    _mm512_store_si512(all, at.low);
    _mm512_store_si512(all + 16, at.high);
    base = all[__builtin_ctz(mask)];
    at = only(at, mask, base);
  }
  if (!fits(at, base, 256, bytes)) {
    base = _mm512_reduce_min_epu32(_mm512_min_epu32(at.low, at.high));
    if (!fits(at, base, 256, bytes)) return false;
  }
  if (fits(at, base, 128, bytes)) {
    permute_window<elements, false>(shared + base, base, at, mask, registers, to);
  } else {
    permute_window<elements, true>(shared + base, base, at, mask, registers, to);
  }
  return true;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA

#endif
