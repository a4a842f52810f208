// Recheck: does what is stored still hold? Compiles, checks and times stored variants again and compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kiln/cache/pack.h"
#include "kiln/generator/catalogue.h"
#include "kiln/tuner/laboratory.h"

namespace kiln {

struct RecheckOptions {
  size_t sample = 10;       ///< Records to look at, winners first; 0: all.
  uint64_t seed = 1;        ///< Seed of the order among winners and among the others.
  double tolerance = 0.05;  ///< Times that differ by at most this share of the stored one agree.
  int samples = 15;         ///< Taken of each variant on a real device; an emulated one tells all in one.
  Expressions expressions;  ///< Texts of the user code that records are of: the cache has none.
};

/// Outcome of checking one stored record.
struct Rechecked {
  enum class Finding {
    agrees,  ///< Right, and as fast as stored.
    faster,  ///< Right, and faster by more than the tolerance.
    slower,  ///< Right, and slower by more than the tolerance.
    failed,  ///< Refused, does not compile, wrong, crashed, ...: see `error`.
  };
  cache::Record stored;
  Finding finding = Finding::failed;
  double seconds = 0;  ///< Median now; 0 if it failed.
  double spread = 0;   ///< Half-width of the median's confidence interval, seconds.
  std::string check;   ///< The check's verdict in words.
  std::string error;   ///< Why it failed.
  /// Where it was found wrong, or crashed or hung twice: what bars it (docs/cache-format.md, "What is never used"). It
  /// is the caller's to store (store_trial()).
  std::optional<tuner::Trial> bar;
};

std::string_view to_string(Rechecked::Finding finding);

struct RecheckResult {
  std::vector<Rechecked> checked;
  int64_t candidates = 0;     ///< Records of this device that could be looked at.
  int64_t other_devices = 0;  ///< Usable records of other devices: they say nothing about this one.
  int64_t stale = 0;          ///< Records of algorithms that have changed since.
  int64_t without_text = 0;   ///< Records of user code that RecheckOptions::expressions holds no text of: nothing can
                              ///< be made.
};

/// Looks at a sample of the records of `contents` that were timed on the laboratory's device. `progress` is called
/// before each one, with its number from 0 and how many there are. Throws what the laboratory throws.
RecheckResult recheck(const cache::Pack& contents, const Catalogue& catalogue, tuner::Laboratory& laboratory,
                      const RecheckOptions& options, const std::function<void(size_t, size_t)>& progress = {});

}  // namespace kiln
