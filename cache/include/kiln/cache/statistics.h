// Contents of a cache, in numbers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"

namespace kiln::cache {

/// Records of one algorithm, in numbers.
struct AlgorithmStatistics {
  std::int64_t candidates = 0;  ///< Records, stale ones included.
  std::int64_t stale = 0;       ///< Records of a digest that is not current.
  std::int64_t failed = 0;      ///< Records that could not win: refused, wrong, crashed, ...
  std::int64_t wins = 0;        ///< Requests whose winner it is.
};

struct DeviceStatistics {
  DeviceEntry device;
  std::int64_t requests = 0;
  std::int64_t without_winner = 0;  ///< Requests for which nothing stored can be used.
  std::int64_t records = 0;
  std::int64_t stale = 0;
  std::map<std::string, std::int64_t> outcomes;  ///< Records by outcome, stale ones included.
  std::map<std::string, AlgorithmStatistics> algorithms;
  std::set<std::string> driver_versions, nvrtc_versions, kiln_versions;
  std::int64_t oldest_ms = 0;  ///< Time of the oldest record: UTC, milliseconds since 1970; 0 without any.
  std::int64_t newest_ms = 0;
};

/// One entry per device of `pack`, in its order. `is_current`: an empty function means that all are.
std::vector<DeviceStatistics> statistics(const Pack& pack, const IsCurrent& is_current = {});

}  // namespace kiln::cache
