// Moving a warp's elements between memory and registers, with short cuts for the patterns that kernels use: all lanes
// at one address, and lanes side by side. Patterns are looked for in half warps, because a tile's row is often 16 wide.
#pragma once

#include <cstring>

#include "addresses.h"
#include "lanes.h"
#include "word_squares.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

enum class Pattern : uint8_t { uniform, contiguous, scattered };

inline constexpr int half_warp = 16;

template <class Offset>
inline Pattern pattern_of(const Offset* offset, uint32_t stride) {
  const Offset first = offset[0];
  Offset differs = 0, gaps = 0;
  for (int k = 0; k < half_warp; ++k) {
    differs |= offset[k] ^ first;
    gaps |= offset[k] - first - static_cast<Offset>(k) * stride;
  }
  return differs == 0 ? Pattern::uniform : gaps == 0 ? Pattern::contiguous : Pattern::scattered;
}

template <class E, int elements, class A>
inline void load_lane(const A& addresses, int lane, E* const* to) {
  E value[elements];
  std::memcpy(value, addresses.at(lane), sizeof(value));
  for (int k = 0; k < elements; ++k) to[k][lane] = value[k];
}

template <class E, int elements, class A>
inline void load_scattered(const A& addresses, int first, E* const* to) {
  if constexpr (sizeof(E) == 4 && elements == 4) {
    for (int lane = first; lane < first + half_warp; lane += 4) {
      Words w[4];
      for (int k = 0; k < 4; ++k) w[k] = words_at(addresses.at(lane + k));
      transpose(w);
      for (int k = 0; k < 4; ++k) put_words(to[k] + lane, w[k]);
    }
  } else {
    for (int lane = first; lane < first + half_warp; ++lane) load_lane<E, elements>(addresses, lane, to);
  }
}

/// to[k][lane] = element k at the lane's address, for all lanes.
template <class E, int elements, class A>
inline void load_all(const A& addresses, E* const* to) {
  for (int first = 0; first < 32; first += half_warp) {
    switch (pattern_of(addresses.offset.lane + first, sizeof(E) * elements)) {
      case Pattern::uniform: {
        E value[elements];
        std::memcpy(value, addresses.at(first), sizeof(value));
        for (int k = 0; k < elements; ++k) {
          for (int lane = 0; lane < half_warp; ++lane) to[k][first + lane] = value[k];
        }
        break;
      }
      case Pattern::contiguous:
        if constexpr (elements == 1) {
          std::memcpy(to[0] + first, addresses.at(first), half_warp * sizeof(E));
          break;
        }
        [[fallthrough]];
      case Pattern::scattered:
        load_scattered<E, elements>(addresses, first, to);
        break;
    }
  }
}

template <class E, int elements, class A>
inline void load_some(const A& addresses, Mask mask, E* const* to) {
  for (; mask != 0; mask &= mask - 1) load_lane<E, elements>(addresses, __builtin_ctz(mask), to);
}

template <class E, int elements, class A>
inline void store_lane(const A& addresses, int lane, const E* const* from) {
  E value[elements];
  for (int k = 0; k < elements; ++k) value[k] = from[k][lane];
  std::memcpy(addresses.at(lane), value, sizeof(value));
}

/// The reverse. Where lanes meet at an address, the last one's value stays.
template <class E, int elements, class A>
inline void store_all(const A& addresses, const E* const* from) {
  for (int first = 0; first < 32; first += half_warp) {
    if constexpr (elements == 1) {
      if (pattern_of(addresses.offset.lane + first, sizeof(E)) == Pattern::contiguous) {
        std::memcpy(addresses.at(first), from[0] + first, half_warp * sizeof(E));
        continue;
      }
    }
    if constexpr (sizeof(E) == 4 && elements == 4) {
      for (int lane = first; lane < first + half_warp; lane += 4) {
        Words w[4];
        for (int k = 0; k < 4; ++k) w[k] = words_at(from[k] + lane);
        transpose(w);
        for (int k = 0; k < 4; ++k) put_words(addresses.at(lane + k), w[k]);
      }
    } else {
      for (int lane = first; lane < first + half_warp; ++lane) store_lane<E, elements>(addresses, lane, from);
    }
  }
}

template <class E, int elements, class A>
inline void store_some(const A& addresses, Mask mask, const E* const* from) {
  for (; mask != 0; mask &= mask - 1) store_lane<E, elements>(addresses, __builtin_ctz(mask), from);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
