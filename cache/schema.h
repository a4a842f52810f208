// The tables of the tuning database and the way from older versions of them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sqlite.h"

namespace kiln::cache {

/// PRAGMA application_id of our files: "KILN".
inline constexpr std::int64_t application_id = 0x4b494c4e;

/// One step of the schema: from version `to - 1` to `to`, inside a transaction.
struct Migration {
  int to;
  void (*apply)(Connection& db);
};

/// All steps, in order, without gaps; the last one's `to` is the version that this library reads and writes.
std::span<const Migration> migrations();
int schema_version();
/// The oldest version that can be read as it is: version 4 only adds an index, version 5 tables that only Store::runs()
/// reads.
inline constexpr int oldest_readable_version = 3;
/// The first version that has `runs`.
inline constexpr int first_version_with_runs = 5;

/// The first thing in which the schema of `db` is not that of this version, in words: "the view devices is not Kiln's".
/// Nothing if it is the same but for blanks. Runs nothing of that schema.
std::optional<std::string> foreign_part(Connection& db, std::int64_t version);

/// Brings `db` from its version to the last one of `steps`, in one transaction; two processes may do so at once. No
/// effect when it is there already.
void migrate(Connection& db, std::span<const Migration> steps);

}  // namespace kiln::cache
