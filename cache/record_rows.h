// Rows of the database as records and fronts, over a bare connection: what the store and the migrations share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "front.h"
#include "kiln/cache/record.h"
#include "sqlite.h"

namespace kiln::cache {

/// Throws SqliteFault(SQLITE_CORRUPT): rows are missing or are not as they were written.
[[noreturn]] void throw_damaged();

/// The condition on a row of `records` that is bars(), in the very words of the index of that name: SQLite only takes a
/// partial index for a query that repeats its condition.
inline constexpr const char* records_that_bar = "outcome IN ('wrong_result', 'timed_out', 'crashed')";

/// A SELECT of all that record_of() reads, then its checksum and the row of its algorithm.
std::string select_records(std::string_view where);

/// The record of a row that select_records() gives. Nothing if it is not as it was written, or is none that Kiln
/// writes.
std::optional<Record> record_of(const Query& row);

/// The device of a row of device, name, cc_major, cc_minor, sms, emulated, checksum. Nothing as for record_of().
std::optional<DeviceEntry> device_of(const Query& row);

/// Whom a front belongs to.
struct FrontOwner {
  std::string device;  ///< DeviceEntry::id
  std::string request;
};

/// Makes the front of a device and a request anew from its records.
void write_front(Connection& db, std::int64_t device_row, std::int64_t request_row, const FrontOwner& owner);

/// Stores the front that `entries` make: all that is usable of a device and a request. They are reduced.
void store_front(Connection& db, std::int64_t device_row, std::int64_t request_row, const FrontOwner& owner,
                 std::vector<FrontEntry> entries);

/// The algorithms by row.
AlgorithmRows read_algorithms(Connection& db);

/// Samples as they are stored: little-endian doubles.
std::string_view bytes_of(const std::vector<double>& samples);

/// Migration 2: gives every device and record its checksum and makes all fronts anew.
void seal(Connection& db);

}  // namespace kiln::cache
