// FileStore: results that are costly to make, kept in files by the digest of what they are made from, for all
// processes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kiln::store {

inline constexpr uint64_t default_limit = uint64_t{512} << 20;  ///< Bytes.

struct StoreOptions {
  std::string folder;  ///< Made when the first entry is written.
  /// Beyond it, the entries that were not used for the longest time go. Looked at by the first entry that a FileStore
  /// writes, and again when it has written an eighth of what was free.
  uint64_t limit_bytes = default_limit;
  /// Entries of other users are taken, and folder and files get the rights that the umask leaves. Else only those of
  /// the effective user and root are taken, and nobody else may read what is made.
  bool shared = false;
  /// How long to wait for another process that makes the same entry, before making it here too.
  std::chrono::milliseconds patience{120'000};
};

/// Counts of one FileStore.
struct StoreCounts {
  uint64_t found = 0;    ///< Entries taken from the folder.
  uint64_t made = 0;     ///< Entries made, kept or not.
  uint64_t damaged = 0;  ///< Files that were not what was written: made again.
  uint64_t evicted = 0;  ///< Files removed: the least used, and what processes that died had left.
};

/// A folder with a file per entry. Knows keys and bytes, not what they are.
///
/// Any number of processes and threads may use one folder, also while others evict or die: an entry is written aside,
/// flushed and renamed, so a reader sees all of it or nothing; one process makes an entry while others that want it
/// wait for that one, by a lock that goes with its holder. Every entry has a checksum over key and content: a file that
/// is cut off, altered or of another format counts as missing.
///
/// A folder that cannot be read or written never fails the caller: the first trouble is announced, and from then on
/// entries are made and not kept. Where the file system has no locks, entries may be made twice.
class FileStore {
 public:
  using Announce = std::function<void(std::string_view message)>;
  /// Looks at stored bytes and says whether it took them. Called with whole entries only.
  using Take = std::function<bool(std::string_view bytes)>;
  /// Makes the entry. An exception of it leaves obtain(); nothing is stored then.
  using Make = std::function<std::string()>;

  /// Touches no file. `announce` is called from the thread that met the trouble, once; it must not throw.
  explicit FileStore(StoreOptions options, Announce announce = {});

  /// Either gives the stored entry of `key` to `take`, which accepts it, or calls `make` and stores what it returns.
  ///
  /// `key`: 32 hexadecimal digits, as Digest makes them; throws Error(internal) for anything else. Thread-safe. Waits
  /// while another thread or process makes the same entry.
  void obtain(std::string_view key, const Take& take, const Make& make);

  /// Gives the stored entry of `key` to `take`. Returns whether there is one that `take` accepts. Throws as obtain();
  /// waits for nobody. Thread-safe.
  bool find(std::string_view key, const Take& take);

  const StoreOptions& options() const { return options_; }
  StoreCounts counts() const;

 private:
  enum class Stored { taken, missing, damaged };

  Stored look_up(std::string_view key, const Take& take);
  std::string make_entry(Stored stored, const Make& make);
  void publish(std::string_view key, const std::string& content);
  void stay_within_limit();
  void give_up(std::string_view done, const std::string& why);
  std::string path_of(std::string_view key) const;

  StoreOptions options_;
  Announce announce_;
  std::atomic<bool> writable_{true};
  std::atomic<uint64_t> found_{0}, made_{0}, damaged_{0}, evicted_{0};
  std::atomic<uint64_t> room_{0}, added_{0};  // bytes: free when the files were last looked at, and written since
};

}  // namespace kiln::store
