#include "kiln/cache/diff.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kiln/base/tie.h"

namespace kiln::cache {
namespace {

using Records = std::span<const Record>;

// The records of the first request on the first device in `records`, which are in order.
Records first_request(Records records) {
  const auto other = std::find_if(records.begin(), records.end(), [&](const Record& r) {
    return r.request != records.front().request || r.device != records.front().device;
  });
  return records.first(static_cast<std::size_t>(other - records.begin()));
}

auto place(const Record& record) {
  return std::tie(record.device, record.request);
}

bool is_tie(double a, double b) {
  return std::max(a, b) <= tie_limit(std::min(a, b));
}

// Whether two records of one identity say the same of it. When, in which session and by which versions they were made
// is not compared, and neither are times that are a tie.
bool same_result(const Record& a, const Record& b) {
  return a.outcome == b.outcome && a.kind == b.kind && is_tie(a.seconds, b.seconds) &&
         a.workspace_bytes == b.workspace_bytes && a.deterministic == b.deterministic && a.resources == b.resources;
}

void count_records(Records before, Records after, RequestChange& change) {
  while (!before.empty() || !after.empty()) {
    const bool only_before = after.empty() || (!before.empty() && listed_before(before.front(), after.front()));
    const bool only_after = before.empty() || (!after.empty() && listed_before(after.front(), before.front()));
    if (only_before) {
      ++change.records_removed;
    } else if (only_after) {
      ++change.records_added;
    } else if (!same_result(before.front(), after.front())) {
      ++change.records_changed;
    }
    if (!only_after) before = before.subspan(1);
    if (!only_before) after = after.subspan(1);
  }
}

bool same_choice(const std::optional<Record>& a, const std::optional<Record>& b) {
  if (!a || !b) return !a && !b;
  return same_identity(*a, *b);
}

Change kind_of(Records before, Records after, const RequestChange& change) {
  if (before.empty()) return Change::added;
  if (after.empty()) return Change::removed;
  if (!same_choice(change.before, change.after)) return Change::winner;
  const bool other_time = change.before && !is_tie(change.before->seconds, change.after->seconds);
  return other_time ? Change::time : Change::records;
}

std::optional<Record> winner_of(Records records, const IsCurrent& is_current) {
  const Record* winner = winner_among(records, is_current);
  return winner == nullptr ? std::nullopt : std::optional(*winner);
}

RequestChange compare(Records before, Records after, const IsCurrent& is_current) {
  const Record& any = before.empty() ? after.front() : before.front();
  RequestChange change;
  change.device = any.device;
  change.request = any.request;
  change.before = winner_of(before, is_current);
  change.after = winner_of(after, is_current);
  count_records(before, after, change);
  change.change = kind_of(before, after, change);
  return change;
}

// The winner stays and every record says the same.
bool is_none(const RequestChange& change) {
  return change.change == Change::records &&
         change.records_added + change.records_removed + change.records_changed == 0;
}

void compare_devices(const Pack& before, const Pack& after, Diff& result) {
  const auto find = [](const Pack& pack, const std::string& id) -> const DeviceEntry* {
    const auto found =
        std::find_if(pack.devices.begin(), pack.devices.end(), [&](const auto& d) { return d.id == id; });
    return found == pack.devices.end() ? nullptr : &*found;
  };
  for (const DeviceEntry& device : before.devices) {
    if (find(after, device.id) == nullptr) result.devices_removed.push_back(device);
  }
  for (const DeviceEntry& device : after.devices) {
    const DeviceEntry* old = find(before, device.id);
    if (old == nullptr) {
      result.devices_added.push_back(device);
    } else if (*old != device) {
      result.devices_changed.push_back(device);
    }
  }
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::added:
      return "added";
    case Change::removed:
      return "removed";
    case Change::winner:
      return "winner";
    case Change::time:
      return "time";
    case Change::records:
      return "records";
  }
  return "unknown";
}

std::optional<double> RequestChange::speedup() const {
  if (!before || !after) return std::nullopt;
  return before->seconds / after->seconds;
}

Diff diff(const Pack& before, const Pack& after, const IsCurrent& is_current) {
  Diff result;
  compare_devices(before, after, result);
  Records old = before.records, fresh = after.records;
  while (!old.empty() || !fresh.empty()) {
    Records from = old.empty() ? old : first_request(old);
    Records to = fresh.empty() ? fresh : first_request(fresh);
    if (!from.empty() && !to.empty()) {  // the requests of each come in order: the earlier one is not in the other
      if (place(from.front()) < place(to.front()))
        to = {};
      else if (place(to.front()) < place(from.front()))
        from = {};
    }
    RequestChange change = compare(from, to, is_current);
    if (is_none(change)) {
      ++result.unchanged;
    } else {
      result.changes.push_back(std::move(change));
    }
    old = old.subspan(from.size());
    fresh = fresh.subspan(to.size());
  }
  return result;
}

}  // namespace kiln::cache
