// The 128-bit hash by which winners are looked up.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::cache {

/// XXH3-128 of a request's canonical line. The index stores this instead of the text: with a million keys two collide
/// with a probability of 1e-27. Compute once per Request and keep it, where the 10 to 20 ns count.
struct KeyHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const KeyHash&, const KeyHash&) = default;
};

KeyHash hash_key(std::string_view request);

}  // namespace kiln::cache
