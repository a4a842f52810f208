// Data that a launch leaves in L2 for the next one of its stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::emulator {

/// A part of a region that a kernel has stored.
struct StoredPart {
  std::string region;           ///< Region::name: another may come to lie at its addresses
  uint64_t begin = 0, end = 0;  ///< addresses
};

/// All that the launch before stored, if that is at most half of L2; nothing after a copy or a fill, whose bytes and
/// what they push out are not followed.
using LeftInL2 = std::vector<StoredPart>;

}  // namespace kiln::emulator
