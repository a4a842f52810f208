// The in-memory index of winners: what a plan lookup asks instead of SQLite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/record.h"

namespace kiln::cache {

/// Why a candidate may be used; the first class that has one wins.
enum class Standing {
  measured_here,      ///< Time taken on this DeviceId.
  same_architecture,  ///< Time taken on another device of the same compute capability; nearest SM count first.
  predicted,          ///< Modelled from machine code for this card, by an emulated device (kiln/cache/machine_clock.h).
  estimated,          ///< By estimate(), for this architecture.
};

std::string_view to_string(Standing standing);

/// The layers that candidates are read from. Within one Standing an earlier layer wins over a later one, and within a
/// layer what was loaded first.
enum class Origin {
  user_database,
  pack,         ///< Pack of the application, or of whoever starts it.
  system_pack,  ///< Installed for everybody on the machine.
};

/// Demands of a caller on a candidate.
struct Filter {
  std::int64_t workspace_limit = std::numeric_limits<std::int64_t>::max();  ///< Bytes.
  bool deterministic_only = false;

  bool admits(std::int64_t workspace_bytes, bool deterministic) const {
    return workspace_bytes <= workspace_limit && (deterministic || !deterministic_only);
  }
};

/// A variant to use. The views live as long as the Winners object.
struct Choice {
  std::string_view algorithm;
  std::string_view algorithm_digest;
  std::string_view config;
  double seconds = 0;
  std::int64_t workspace_bytes = 0;
  bool deterministic = true;
  TimeKind kind = TimeKind::measured;
  Standing standing = Standing::measured_here;
  Origin origin = Origin::user_database;
  std::string_view source;  ///< Path of the database or pack.
  std::string_view device;  ///< Id of the device it was timed on.
  std::string_view clock;   ///< Clock of a predicted one: "machine-code clock 1".
};

/// A time of a variant, by whatever standing its source has.
struct TimedVariant {
  std::string algorithm;
  std::string config;
  double seconds = 0;
  Standing standing = Standing::measured_here;
  bool of_pack = false;  ///< Whether a pack claims it.
  std::string device;    ///< Id of the device it was timed on.
};

/// Why a variant must not be used. The views live as long as the Winners object.
struct Bar {
  std::string_view outcome;  ///< wrong_result, timed_out or crashed.
  std::string_view device;   ///< Id of the device on which it was found.
  std::string_view source;   ///< Path of the database or pack that says so.
  bool own = false;          ///< A run on the user's own database found it, which nobody else can.
};

/// Told of packs and of lines of packs that are not used, and why; by the thread that met them, with no lock held. Must
/// not throw.
using AnnouncePack = std::function<void(const std::string& problem)>;

/// The index, for one device (a Context has one device, so the ranking is settled while reading).
///
/// Loading only opens: what is known of a request is read when it is first asked for, and kept, "nothing" too. The
/// first look-up takes a lock and some ten microseconds. Later ones of find() and all() take no lock: entries are
/// immutable and published with a release store, a request as a whole; a replaced one is freed with the object, so that
/// what find() returned stays valid. Everything may be called from any thread.
class Winners {
 public:
  /// `device`: the device to choose for. `is_current`: asked once per (algorithm, digest); see IsCurrent.
  explicit Winners(DeviceEntry device, IsCurrent is_current = {}, AnnouncePack announce = {});
  ~Winners();
  Winners(const Winners&) = delete;
  Winners& operator=(const Winners&) = delete;

  const DeviceEntry& device() const;

  /// Takes over what `database` holds, and keeps it open. Never throws for its faults (the database announces those).
  void load(const Database& database);
  /// Takes over a pack file as part of `layer`, and keeps it open. A pack that cannot be read or understood is
  /// announced, never thrown; a line of it when its request is first asked for.
  void load_pack(const std::string& path, Origin layer = Origin::pack);
  /// As load_pack, from text; `name` stands in Choice::source.
  void load_pack_text(std::string_view text, const std::string& name, Origin layer = Origin::pack);

  /// Reads one request again after an insert() into `database`; the rest of the index is untouched.
  void refresh(const Database& database, std::string_view request);
  /// Reads all lines of the packs, for what is wrong with them.
  void check_packs() const;

  /// The variant to use, or nullopt: then only estimate() is left. About 100 ns once it was asked for.
  std::optional<Choice> find(std::string_view request, const Filter& filter = {}) const;

  /// Everything that find() would consider, in the order of precedence: for `explain`, and for the next best where the
  /// best does not compile here.
  std::vector<Choice> all(std::string_view request, const Filter& filter = {}) const;
  /// Variants that all() leaves out because somebody else's records bar them, in the same order: for where nothing else
  /// serves. A pack may lie.
  std::vector<Choice> doubted(std::string_view request, const Filter& filter = {}) const;

  /// The requests of which some source has records of this device or of another whose times count here: those of
  /// databases first, and perhaps repeated. Reads all sources: for an index of them. Takes a lock.
  std::vector<std::string> requests() const;
  /// All times of a request that its first source in precedence has of one device, not only of variants that could win,
  /// fastest first. Without stored estimates, times of changed algorithms, and variants that any record bars. Reads the
  /// sources at each call. Takes a lock.
  std::vector<TimedVariant> times(std::string_view request) const;

  /// Why this variant of the current library should not serve `request`; nothing if no record bars it, or if a record
  /// of more authority has a time of it. This device has more than another of its architecture; then the earlier layer.
  /// An own bar is only lifted by an own time. find() and all() leave barred variants out by the same rule. Takes a
  /// lock.
  std::optional<Bar> bar(std::string_view request, std::string_view algorithm, std::string_view config) const;
  /// Whether a record bars the very program with this source digest for `request`, whatever the library makes now and
  /// whoever has timed it: for programs that came compiled. Takes a lock.
  std::optional<Bar> bars_program(std::string_view request, std::string_view source_digest) const;
  /// Whether a run on the user's own database has a time of the variant, on this device or another of its architecture:
  /// nothing gets one without a check. Claims of packs, and merged records, are no check. Takes a lock.
  bool has_passed(std::string_view request, std::string_view algorithm, std::string_view config) const;
  /// Whether a source is in the quarantine of the loaded database for this device, with any driver and NVRTC; and
  /// whether any is. Take a lock.
  bool is_quarantined(std::string_view source_digest) const;
  bool has_quarantine() const;

  /// Candidates for `request` that are left out because their algorithm has changed since.
  std::int64_t stale(std::string_view request) const;
  /// All that was announced of packs so far. Takes a lock.
  std::vector<std::string> problems() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln::cache
