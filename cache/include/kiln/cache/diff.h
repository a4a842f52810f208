// Changes between two caches: for reviewing a pack before it ships.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"

namespace kiln::cache {

/// Kind of change of one request on one device.
enum class Change {
  added,    ///< Only the later cache knows the request.
  removed,  ///< Only the earlier one does.
  winner,   ///< Another algorithm, configuration or algorithm version wins, or nothing did or does.
  time,     ///< The same winner, with a time that is no tie with its earlier one.
  records,  ///< The same winner and time; other candidates came, went or changed.
};

/// "added", "removed", "winner", "time", "records".
std::string_view to_string(Change change);

struct RequestChange {
  std::string device;   ///< DeviceEntry::id
  std::string request;  ///< The canonical line.
  Change change = Change::records;
  std::optional<Record> before;  ///< The winners, by winner_among(); nothing where none can win.
  std::optional<Record> after;
  std::int64_t records_added = 0;  ///< Identities that only the later cache holds.
  std::int64_t records_removed = 0;
  std::int64_t records_changed = 0;  ///< In both, with another result.

  /// Time before over time after, of the winners: above 1 is faster now. Nothing unless both have one.
  std::optional<double> speedup() const;
};

struct Diff {
  std::vector<DeviceEntry> devices_added;
  std::vector<DeviceEntry> devices_removed;
  std::vector<DeviceEntry> devices_changed;  ///< As the later cache describes them.
  std::vector<RequestChange> changes;        ///< By device, then request.
  std::int64_t unchanged = 0;                ///< Requests with the same results in both.
};

/// Compares the results of two canonical packs (make_pack): outcomes, times (a tie is no change), workspace,
/// reproducibility and resources, not when and by which versions they were made. `is_current`: whose records can win;
/// an empty function: all.
Diff diff(const Pack& before, const Pack& after, const IsCurrent& is_current = {});

}  // namespace kiln::cache
