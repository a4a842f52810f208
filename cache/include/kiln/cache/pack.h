// Packs: a shipped, reviewable, text form of records. docs/cache-format.md has the grammar.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/record.h"

namespace kiln::cache {

inline constexpr int pack_format_version = 2;
inline constexpr int pack_format_without_marks = 1;  ///< Written where no device's times are predictions.
/// Limits, so that a hostile pack costs neither memory nor time without bound. A pack beyond them is refused.
inline constexpr std::size_t max_pack_line = std::size_t{1} << 20;    ///< Bytes of a line.
inline constexpr std::size_t max_pack_file = std::size_t{256} << 20;  ///< Bytes of a file.
inline constexpr std::size_t max_pack_devices = 1024;
inline constexpr std::size_t max_pack_records = std::size_t{1} << 20;
inline constexpr std::size_t max_listed_refusals = 1000;  ///< Refusals beyond it are counted, not listed.

/// The content of a pack. Canonical: devices by id, each once; records by listed_before, one per identity, each of a
/// known device. The functions below keep it so. Session ids do not travel: they mean nothing elsewhere.
struct Pack {
  std::vector<DeviceEntry> devices;
  std::vector<Record> records;
  /// How well the machine-code clocks of its emulated devices do, in words, by device id: what the pack says of its
  /// predictions. Databases do not keep it.
  std::map<std::string, std::string> accuracies;

  friend bool operator==(const Pack&, const Pack&) = default;
};

/// A line that was left out, and why. `line` counts from 1.
struct PackRefusal {
  std::size_t line = 0;
  std::string reason;

  /// "line 12: <reason>".
  std::string text() const;
};

struct ParsedPack {
  Pack pack;
  std::string library_version;       ///< Version of the Kiln that wrote it.
  std::vector<PackRefusal> refused;  ///< The first max_listed_refusals.
  std::size_t refused_lines = 0;     ///< All of them.
};

/// Makes a pack canonical: sorts, and lets `supersedes` settle duplicates. Throws Error(invalid_argument) for a record
/// that cannot be stored or whose device is not listed.
Pack make_pack(std::vector<DeviceEntry> devices, std::vector<Record> records);

/// Canonical text; equal packs give equal bytes. `library_version` is that of the writing Kiln.
std::string print_pack(const Pack& pack, std::string_view library_version);

/// Parses and validates. A fault in a line refuses that line and, for a device or request line, the lines that depend
/// on it; the rest is kept. Throws Error(parse_error), "line N: ...", for text that is no pack at all, or one of a
/// newer format.
ParsedPack parse_pack(std::string_view text, const PackValidator& validator = {});

/// For callers that want all or nothing: throws Error(parse_error) for the first refusal, with the number of others.
Pack require_complete(ParsedPack parsed);

/// The union; `supersedes` decides per identity. Commutative, associative and idempotent.
Pack merge(const Pack& a, const Pack& b);

/// The one of `records`, which are of one request on one device, that Winners would choose without a limit; null if
/// none can win.
const Record* winner_among(std::span<const Record> records, const IsCurrent& is_current = {});

struct ExportOptions {
  /// Only what Winners could choose under some Filter, and what bars a variant; else every candidate.
  bool winners_only = false;
  std::vector<std::string> devices;  ///< Ids; empty means all.
  IsCurrent is_current;              ///< Leaves stale records out, where given.
  bool samples = true;               ///< False leaves the samples out: smaller diffs.
};

Pack export_pack(const Database& database, const ExportOptions& options = {});

/// Whole-file helpers. read: Error(io_error) where it cannot be read, then as parse_pack with the path in the message.
/// write: as OutputFile does, so that a reader sees the old or the new pack; Error(io_error).
ParsedPack read_pack_file(const std::string& path, const PackValidator& validator = {});
void write_pack_file(const std::string& path, const Pack& pack, std::string_view library_version);

}  // namespace kiln::cache
