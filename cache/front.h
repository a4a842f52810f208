// The front of a request: its candidates that could win under some workspace limit, determinism demand and set of
// current algorithms. Everything else is never looked at when the cache is opened.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/key_hash.h"
#include "kiln/cache/record.h"
#include "kiln/cache/winners.h"

namespace kiln::cache {

/// An algorithm as of one digest.
struct AlgorithmVersion {
  std::int64_t row = 0;  ///< In its database; 0 in a pack.
  std::string name;
  std::string digest;
};

/// The algorithms of a database by row. Nodes stay where they are while others come.
using AlgorithmRows = std::unordered_map<std::int64_t, AlgorithmVersion>;

/// One candidate of a front. Owns nothing.
struct FrontEntry {
  const AlgorithmVersion* algorithm = nullptr;
  std::string_view config;
  double seconds = 0;
  std::int64_t workspace_bytes = 0;
  TimeKind kind = TimeKind::measured;
  bool deterministic = true;
};

/// The views point into `record` and `algorithm`.
FrontEntry entry_of(const Record& record, const AlgorithmVersion& algorithm);

/// A variant that a record bars (see bars()). Owns nothing.
struct BarredEntry {
  const AlgorithmVersion* algorithm = nullptr;
  std::string_view config;
  std::string_view outcome;
  std::string_view source_digest;  ///< May be empty.
  bool own = false;                ///< is_own() of its record.
};

/// The fixed order that settles ties: TieRank, then digest and time, so that it is total.
bool tie_order(const FrontEntry& a, const FrontEntry& b);

/// Sorts by tie_order and drops every entry that could never be chosen: one for which the same algorithm version, also
/// predicted or also taken, has another that passes every filter this one passes and is no slower and earlier in
/// tie_order, or is faster by more than a tie. Exact: choose() gives the same before and after, for any filter and any
/// set of versions.
void reduce_to_front(std::vector<FrontEntry>& entries);

/// The entry to use among `entries`, which are in tie_order: the fastest that passes, or what is tied with it and comes
/// first.
const FrontEntry* choose(std::span<const FrontEntry> entries, const Filter& filter);

/// The entries that pass, each the choose() of those that are left: the order in which to try them.
std::vector<const FrontEntry*> in_order(std::span<const FrontEntry> entries, const Filter& filter);

/// Entries of records that are of one request on one device.
struct RecordFront {
  std::vector<AlgorithmVersion> versions;  ///< One per record; its row is the record's index.
  std::vector<FrontEntry> entries;         ///< They point into `versions` and the records.
};

/// All of the records that can win and are current (an empty function: all are).
RecordFront entries_of(std::span<const Record> records, const IsCurrent& is_current);

/// The same, reduced to the front.
RecordFront front_of(std::span<const Record> records, const IsCurrent& is_current);

/// The stored form of the front of `device` (DeviceEntry::id): the key's hash, then the entries, algorithms by their
/// row in the database, then a checksum. Throws Error(invalid_argument) for a config that it cannot hold.
std::string encode_front(KeyHash key, std::string_view device, std::span<const FrontEntry> entries);

/// The views point into `bytes`. False if `bytes` or what they refer to is damaged; never reads outside of them.
bool decode_front(std::string_view bytes, std::string_view device, const AlgorithmRows& algorithms, KeyHash& key,
                  std::vector<FrontEntry>& entries);

/// Receives the fronts of a request in a database or pack, and what its records bar.
class FrontVisitor {
 public:
  virtual ~FrontVisitor() = default;
  /// Whether this device's fronts are wanted; `device` lives until the visit ends.
  virtual bool wants(const DeviceEntry& device) = 0;
  /// Whether front() is to be given every record that can win, and not only those that could be chosen.
  virtual bool wants_all() const { return false; }
  /// One front, in tie_order (all records: in any order). Everything dies with the call but `device`.
  virtual void front(const DeviceEntry& device, KeyHash key, std::span<const FrontEntry> entries) = 0;
  /// One barred variant; before or after the front of its request. Everything dies with the call but `device`.
  virtual void barred(const DeviceEntry& device, KeyHash key, const BarredEntry& entry) = 0;
};

}  // namespace kiln::cache
