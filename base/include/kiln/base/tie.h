// When two candidates are equally fast, and which of them is taken then: one rule for what chooses while tuning and for
// what chooses among stored results, so that a retune on a noisy device picks the same winner.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace kiln {

/// Times within this share of the fastest are a tie: several times what medians differ by from one tuning to the next
/// (bench_noise), and no more, because the one that is taken may be that much slower.
inline constexpr double tie_share = 0.01;

/// The longest time that ties with `fastest`, in seconds.
constexpr double tie_limit(double fastest) {
  return fastest * (1 + tie_share);
}

/// The fixed order among ties, best first: less workspace, then bitwise reproducible ones, then by algorithm name, then
/// by configuration, byte-wise. Owns nothing.
struct TieRank {
  std::int64_t workspace_bytes = 0;
  bool varies = false;  ///< Not bitwise reproducible.
  std::string_view algorithm;
  std::string_view config;

  auto operator<=>(const TieRank&) const = default;
};

}  // namespace kiln
