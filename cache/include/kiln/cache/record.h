// Record of one variant for one request on one device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/base/trial_facts.h"

namespace kiln::cache {

/// The device that records were made on. `id` decides identity: two entries with one id are the same device.
struct DeviceEntry {
  std::string id;    ///< Stable text, one line, as printed by the device room's DeviceId.
  std::string name;  ///< For people, e.g. "NVIDIA H200".
  int cc_major = 0;  ///< Compute capability; records of equal (cc_major, cc_minor) are "the same architecture".
  int cc_minor = 0;
  int sms = 0;            ///< Streaming multiprocessors.
  bool emulated = false;  ///< Its times are modelled; to a real device they are predictions at most.

  friend bool operator==(const DeviceEntry&, const DeviceEntry&) = default;
};

/// Where a time comes from.
enum class TimeKind {
  measured,   ///< By events on a real device.
  modelled,   ///< By the emulator's model, from executed counts.
  predicted,  ///< By an algorithm's estimate(); nothing ran.
};

/// "measured", "modelled", "predicted".
std::string_view to_string(TimeKind kind);
std::optional<TimeKind> parse_time_kind(std::string_view text);

/// Names of outcomes. Stored as text, so that a newer Kiln may add some; unknown ones are kept and never win.
namespace outcome {
inline constexpr std::string_view timed = "timed";                    ///< Checked, then timed to the end.
inline constexpr std::string_view rejected_early = "rejected_early";  ///< Checked; timing stopped: clearly slower.
inline constexpr std::string_view predicted = "predicted";            ///< Not run; seconds come from estimate().
inline constexpr std::string_view refused = "refused";                ///< A rule of the algorithm refused it.
inline constexpr std::string_view compile_failed = "compile_failed";
inline constexpr std::string_view wrong_result = "wrong_result";
inline constexpr std::string_view timed_out = "timed_out";
inline constexpr std::string_view crashed = "crashed";
inline constexpr std::string_view out_of_memory = "out_of_memory";
}  // namespace outcome

/// Resource use as the compiler reported it; -1 where unknown.
struct Resources {
  std::int64_t registers = -1;     ///< Per thread.
  std::int64_t spill_bytes = -1;   ///< Stores plus loads, per thread.
  std::int64_t shared_bytes = -1;  ///< Static plus dynamic, per block.

  friend bool operator==(const Resources&, const Resources&) = default;
};

/// One candidate of one request on one device: measured, failed or predicted.
///
/// Identity is (device, request, algorithm, algorithm_digest, config): a new record of the same identity takes the old
/// one's place. An edited algorithm has another digest, so its old records stay, as stale ones.
struct Record : TrialFacts {
  std::string algorithm;  ///< Algorithm name, e.g. "conv_implicit_gemm".
  std::string config;     ///< "PAD=1,TILE=32"; may be empty.
  std::string outcome;    ///< See namespace outcome.
  TimeKind kind = TimeKind::measured;
  Resources resources;

  std::string kiln_version;
  std::string session;          ///< Session::id, or empty.
  std::int64_t created_ms = 0;  ///< UTC, milliseconds since 1970.

  friend bool operator==(const Record&, const Record&) = default;
};

/// Limits of what is stored, so that a pack line stays below max_pack_line and nothing grows without bound.
inline constexpr std::size_t max_samples = 4096;
inline constexpr std::size_t max_name_bytes = 4096;  ///< Each identity field but the request; versions; digests.
inline constexpr std::size_t max_request_bytes = 16384;
inline constexpr double least_pack_seconds = 2e-7;  ///< No kernel starts and ends in less: a pack that says so lies.
/// Records of one request on one device, at the most. The largest space of an algorithm has fewer configurations.
inline constexpr std::size_t max_request_records = 65536;
inline constexpr std::size_t max_text_bytes = 16384;  ///< check and error; longer text is cut, with a mark.

/// Throws Error(invalid_argument), naming field and value, unless `record` can be stored: identity fields are non-empty
/// (config may be empty) valid UTF-8 without control characters, numbers are finite and not negative, sizes are within
/// the limits above.
void validate(const Record& record);
void validate(const DeviceEntry& device);

/// `record` with its free texts (check, error) made storable: NUL and broken UTF-8 become U+FFFD, long text is cut.
Record with_clean_texts(Record record);

/// True if the record can be a winner: it has a time, and its outcome is timed, rejected_early or predicted.
/// A candidate that was rejected early is correct and slow: it may be all that fits a workspace limit.
bool usable(const Record& record);
bool usable(std::string_view outcome, double seconds);

/// True if a record with this outcome bars its variant from being used: it gave a wrong result, hung or crashed.
bool bars(std::string_view outcome);

/// True if a run on this database found it. Neither packs nor merges carry sessions, so what came from elsewhere has
/// none.
bool is_own(const Record& record);

/// Order of records for listings and packs: device, request, algorithm, config, algorithm_digest. Byte-wise.
bool listed_before(const Record& a, const Record& b);
bool same_identity(const Record& a, const Record& b);

/// When two records of one identity meet in a merge: true if `a` stays. A trial beats a prediction; then a record that
/// bars its variant beats a time, which another machine or an earlier run may have taken; then the newer one; then, so
/// that merging is commutative, the greater content. A strict total order on content.
bool supersedes(const Record& a, const Record& b);
/// The same for two descriptions of one device: the greater fields stay.
bool supersedes(const DeviceEntry& a, const DeviceEntry& b);

/// "2026-11-20T06:52:14.123Z"; parse returns nullopt unless the text is exactly of that form and a real date.
std::string format_utc(std::int64_t ms);
std::optional<std::int64_t> parse_utc(std::string_view text);

/// The clock that callers usually pass as created_ms.
std::int64_t utc_now_ms();

}  // namespace kiln::cache
