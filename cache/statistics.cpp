#include "kiln/cache/statistics.h"

#include <algorithm>
#include <span>

namespace kiln::cache {
namespace {

void count(const Record& record, bool current, DeviceStatistics& result) {
  AlgorithmStatistics& algorithm = result.algorithms[record.algorithm];
  ++result.records;
  ++result.outcomes[record.outcome];
  ++algorithm.candidates;
  if (!usable(record)) ++algorithm.failed;
  if (!current) {
    ++result.stale;
    ++algorithm.stale;
  }
  result.driver_versions.insert(record.driver_version);
  result.nvrtc_versions.insert(record.nvrtc_version);
  result.kiln_versions.insert(record.kiln_version);
  result.oldest_ms = result.records == 1 ? record.created_ms : std::min(result.oldest_ms, record.created_ms);
  result.newest_ms = std::max(result.newest_ms, record.created_ms);
}

}  // namespace

std::vector<DeviceStatistics> statistics(const Pack& pack, const IsCurrent& is_current) {
  std::vector<DeviceStatistics> result;
  auto record = pack.records.begin();
  for (const DeviceEntry& device : pack.devices) {
    DeviceStatistics& here = result.emplace_back();
    here.device = device;
    while (record != pack.records.end() && record->device == device.id) {
      const auto first = record;
      for (; record != pack.records.end() && record->device == device.id && record->request == first->request;
           ++record) {
        count(*record, !is_current || is_current(record->algorithm, record->algorithm_digest), here);
      }
      ++here.requests;
      const Record* winner = winner_among(std::span(first, record), is_current);
      if (winner == nullptr) {
        ++here.without_winner;
      } else {
        ++here.algorithms[winner->algorithm].wins;
      }
    }
  }
  return result;
}

}  // namespace kiln::cache
