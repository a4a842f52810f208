#include "front.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>

#include "checksum.h"
#include "field_text.h"
#include "kiln/base/error.h"
#include "kiln/base/tie.h"

namespace kiln::cache {
namespace {

// --- Stored form: little-endian, packed
// --------------------------------------------------------------------------------

template <class T>
void put(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little, "the stored form is little-endian");
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

template <class T>
bool take(std::string_view& in, T& value) {
  if (in.size() < sizeof(T)) return false;
  std::memcpy(&value, in.data(), sizeof(T));
  in.remove_prefix(sizeof(T));
  return true;
}

constexpr std::uint8_t deterministic_bit = 0x80;

bool take_entry(std::string_view& in, const AlgorithmRows& algorithms, FrontEntry& entry) {
  std::int64_t row = 0;
  std::uint8_t flags = 0;
  std::uint16_t length = 0;
  if (!take(in, row) || !take(in, flags) || !take(in, entry.seconds) || !take(in, entry.workspace_bytes) ||
      !take(in, length) || in.size() < length) {
    return false;
  }
  entry.config = in.substr(0, length);
  in.remove_prefix(length);
  const int kind = flags & ~deterministic_bit;
  if (kind > static_cast<int>(TimeKind::predicted)) return false;
  entry.kind = static_cast<TimeKind>(kind);
  entry.deterministic = (flags & deterministic_bit) != 0;
  const auto algorithm = algorithms.find(row);
  if (algorithm == algorithms.end()) return false;
  entry.algorithm = &algorithm->second;
  return std::isfinite(entry.seconds) && entry.seconds > 0 && entry.workspace_bytes >= 0 && valid_utf8(entry.config) &&
         !has_control(entry.config);
}

// --- Reduction
// -----------------------------------------------------------------------------------------------------------

bool passes(const FrontEntry& entry, const Filter& filter) {
  return filter.admits(entry.workspace_bytes, entry.deterministic);
}

// Entries that a change of algorithms keeps or drops together, and that compete within one Standing.
auto group_of(const FrontEntry& entry) {
  return std::tuple(std::string_view(entry.algorithm->name), std::string_view(entry.algorithm->digest),
                    entry.kind == TimeKind::predicted);
}

// Fastest times so far, walking a group in order of workspace.
struct Fastest {
  double any = std::numeric_limits<double>::infinity();
  double deterministic = std::numeric_limits<double>::infinity();

  void see(const FrontEntry& entry) {
    any = std::min(any, entry.seconds);
    if (entry.deterministic) deterministic = std::min(deterministic, entry.seconds);
  }
  // The fastest that passes whatever `entry` passes.
  double against(const FrontEntry& entry) const { return entry.deterministic ? deterministic : any; }
};

using Entries = std::vector<FrontEntry>;

// [first, last) is one group in tie_order; appends what stays of it.
void reduce_group(Entries::const_iterator first, Entries::const_iterator last, Entries& out) {
  Fastest earlier;     // of those before the entry in tie_order
  Fastest not_larger;  // of those with no more workspace
  auto ahead = first;
  for (auto entry = first; entry != last; ++entry) {
    for (; ahead != last && ahead->workspace_bytes <= entry->workspace_bytes; ++ahead) not_larger.see(*ahead);
    const bool beaten = earlier.against(*entry) <= entry->seconds;
    const bool never_tied = tie_limit(not_larger.against(*entry)) < entry->seconds;
    if (!beaten && !never_tied) out.push_back(*entry);
    earlier.see(*entry);
  }
}

}  // namespace

FrontEntry entry_of(const Record& record, const AlgorithmVersion& algorithm) {
  return {&algorithm, record.config, record.seconds, record.workspace_bytes, record.kind, record.deterministic};
}

bool tie_order(const FrontEntry& a, const FrontEntry& b) {
  const auto rank = [](const FrontEntry& e) {
    return std::tuple(TieRank{e.workspace_bytes, !e.deterministic, e.algorithm->name, e.config},
                      std::string_view(e.algorithm->digest), e.seconds);
  };
  return rank(a) < rank(b);
}

void reduce_to_front(Entries& entries) {
  std::sort(entries.begin(), entries.end(), [](const FrontEntry& a, const FrontEntry& b) {
    const auto group_a = group_of(a);
    const auto group_b = group_of(b);
    return group_a != group_b ? group_a < group_b : tie_order(a, b);
  });
  Entries kept;
  for (auto first = entries.cbegin(); first != entries.cend();) {
    const auto last =
        std::find_if(first, entries.cend(), [&](const FrontEntry& e) { return group_of(e) != group_of(*first); });
    reduce_group(first, last, kept);
    first = last;
  }
  std::sort(kept.begin(), kept.end(), tie_order);
  entries = std::move(kept);
}

const FrontEntry* choose(std::span<const FrontEntry> entries, const Filter& filter) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const FrontEntry& entry : entries) {
    if (passes(entry, filter)) fastest = std::min(fastest, entry.seconds);
  }
  for (const FrontEntry& entry : entries) {
    if (passes(entry, filter) && entry.seconds <= tie_limit(fastest)) return &entry;
  }
  return nullptr;
}

std::vector<const FrontEntry*> in_order(std::span<const FrontEntry> entries, const Filter& filter) {
  std::vector<std::size_t> by_time;  // entries are in tie_order, so that an index is a place in it
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (passes(entries[i], filter)) by_time.push_back(i);
  }
  const auto seconds = [&](std::size_t i) { return entries[by_time[i]].seconds; };
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](std::size_t a, std::size_t b) { return entries[a].seconds < entries[b].seconds; });
  std::vector<const FrontEntry*> result;
  std::vector<bool> is_taken(entries.size(), false);
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> tied;  // with the fastest that is left
  std::size_t next = 0;
  for (std::size_t fastest = 0; fastest < by_time.size(); ++fastest) {
    while (!is_taken[by_time[fastest]]) {
      for (; next < by_time.size() && seconds(next) <= tie_limit(seconds(fastest)); ++next) tied.push(by_time[next]);
      result.push_back(&entries[tied.top()]);
      is_taken[tied.top()] = true;
      tied.pop();
    }
  }
  return result;
}

RecordFront entries_of(std::span<const Record> records, const IsCurrent& is_current) {
  RecordFront front;
  front.versions.reserve(records.size());
  for (const Record& record : records) {
    const auto row = static_cast<std::int64_t>(front.versions.size());
    front.versions.push_back({row, record.algorithm, record.algorithm_digest});
    const bool current = !is_current || is_current(record.algorithm, record.algorithm_digest);
    if (current && usable(record)) front.entries.push_back(entry_of(record, front.versions.back()));
  }
  return front;
}

RecordFront front_of(std::span<const Record> records, const IsCurrent& is_current) {
  RecordFront front = entries_of(records, is_current);
  reduce_to_front(front.entries);
  return front;
}

std::string encode_front(KeyHash key, std::string_view device, std::span<const FrontEntry> entries) {
  constexpr std::size_t longest = std::numeric_limits<std::uint16_t>::max();
  std::string out;
  put(out, key.low);
  put(out, key.high);
  for (const FrontEntry& entry : entries) {
    if (entry.config.size() > longest) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("cache record: config has {} bytes, more than {}", entry.config.size(), longest));
    }
    const auto kind = static_cast<std::uint8_t>(entry.kind);
    put(out, entry.algorithm->row);
    put(out, static_cast<std::uint8_t>(kind | (entry.deterministic ? deterministic_bit : 0)));
    put(out, entry.seconds);
    put(out, entry.workspace_bytes);
    put(out, static_cast<std::uint16_t>(entry.config.size()));
    out.append(entry.config);
  }
  put(out, checksum_of_front(out, device, entries));
  return out;
}

bool decode_front(std::string_view bytes, std::string_view device, const AlgorithmRows& algorithms, KeyHash& key,
                  Entries& entries) {
  entries.clear();
  std::int64_t checksum = 0;
  if (bytes.size() < sizeof(checksum)) return false;
  const std::string_view sealed = bytes.substr(0, bytes.size() - sizeof(checksum));
  std::memcpy(&checksum, bytes.data() + sealed.size(), sizeof(checksum));
  bytes = sealed;
  if (!take(bytes, key.low) || !take(bytes, key.high)) return false;
  while (!bytes.empty()) {
    FrontEntry entry;
    if (entries.size() == max_request_records || !take_entry(bytes, algorithms, entry)) return false;
    entries.push_back(entry);
  }
  return checksum == checksum_of_front(sealed, device, entries);
}

}  // namespace kiln::cache
