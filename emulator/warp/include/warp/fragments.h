// The fragments of a warp that are set aside.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warp/warp.h"

namespace kiln::emulator {

/// An instruction's address, to compare with Warp::merge_at.
inline uintptr_t place(const Instruction* i) {
  return reinterpret_cast<uintptr_t>(i);
}

/// Lowers `merge_at` and the like after a fragment's wait changed.
inline void refresh_merge_point(Warp& warp) {
  warp.merge_at = nothing_to_merge;
  for (uint32_t k = 0; k < warp.fragment_count; ++k) {
    const Fragment& fragment = warp.fragments[k];
    if (fragment.wait == Wait::none) warp.merge_at = std::min(warp.merge_at, place(fragment.at));
  }
}

/// Sets `lanes` aside, ready to go on at `at`. They must not be in `active`.
inline void add_ready(Warp& warp, const Instruction* at, Mask lanes) {
  Fragment fragment;
  fragment.at = at;
  fragment.lanes = lanes;
  fragment.last_run = warp.slices;
  warp.fragments[warp.fragment_count++] = fragment;
  warp.merge_at = std::min(warp.merge_at, place(at));
}

/// Sets a waiting fragment aside.
inline void add_waiting(Warp& warp, const Fragment& fragment) {
  warp.fragments[warp.fragment_count++] = fragment;
}

}  // namespace kiln::emulator
