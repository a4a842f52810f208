#include "kiln/store/file_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "atomic_file.h"
#include "entry.h"
#include "file_system.h"
#include "key_lock.h"
#include "kiln/base/error.h"
#include "kiln/base/trusted_place.h"
#include "kiln/store/store_trouble.h"

namespace kiln::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t key_length = 32;
constexpr std::string_view extension = ".entry";
constexpr const char* lock_name = "lock";

// A file written aside that is older than this was left by a process that died. Until then it does not count: it would
// drive out entries, though only its writer may remove it.
constexpr std::chrono::minutes abandoned_after{10};
// Eviction goes on below the limit, so that it is not needed again for the next entry.
constexpr double kept_share = 0.9;

bool is_key(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == key_length && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_entry(const std::string& name) {
  return name.ends_with(extension) && is_key(std::string_view(name).substr(0, name.size() - extension.size()));
}

struct StoredFile {
  fs::path path;
  uint64_t bytes = 0;
  fs::file_time_type used;
  bool aside = false;
};

// Files of the store; others in its folder are nobody's business here. One that vanishes meanwhile is left out.
std::vector<StoredFile> files_in(const std::string& folder) {
  std::vector<StoredFile> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool aside = name.starts_with(aside_prefix);
    if (!aside && !is_entry(name)) continue;
    std::error_code vanished;
    StoredFile file{it->path(), it->file_size(vanished), {}, aside};
    if (!vanished) file.used = it->last_write_time(vanished);
    if (!vanished) files.push_back(std::move(file));
  }
  return files;
}

mode_t rights_of_files(const StoreOptions& options) {
  return options.shared ? 0666 : 0600;
}

std::string trouble_text(const StoreOptions& options, std::string_view done, const std::string& why) {
  return fmt::format(
      "the store of compiled kernels in {} cannot be {}: {}; what can be read of it is used, and new kernels are not "
      "kept (KILN_KERNEL_STORE names another folder, or turns the store off)",
      options.folder, done, why);
}

KeyLock lock_of(const StoreOptions& options, int64_t number, std::chrono::milliseconds patience) {
  return {options.folder + "/" + lock_name, rights_of_files(options), number, patience};
}

}  // namespace

FileStore::FileStore(StoreOptions options, Announce announce)
    : options_(std::move(options)), announce_(std::move(announce)) {}

StoreCounts FileStore::counts() const {
  return {found_.load(), made_.load(), damaged_.load(), evicted_.load()};
}

std::string FileStore::path_of(std::string_view key) const {
  return fmt::format("{}/{}{}", options_.folder, key, extension);
}

void FileStore::obtain(std::string_view key, const Take& take, const Make& make) {
  Stored stored = look_up(key, take);
  if (stored == Stored::taken) return;
  if (!writable_) {
    make_entry(stored, make);
    return;
  }
  if (const auto failure = make_folders(options_.folder, options_.shared ? 0777 : 0700)) give_up("written", *failure);
  const KeyLock lock = lock_of(options_, KeyLock::number_of(key), options_.patience);
  if (!lock.failure().empty()) give_up("written", lock.failure());
  stored = look_up(key, take);  // another one may have made it while this one waited
  if (stored == Stored::taken) return;
  const std::string content = make_entry(stored, make);
  if (writable_) publish(key, content);
}

std::optional<std::string> trouble_with(const StoreOptions& options) {
  if (const auto failure = make_folders(options.folder, options.shared ? 0777 : 0700)) {
    return trouble_text(options, "written", *failure);
  }
  const KeyLock lock = lock_of(options, KeyLock::eviction, std::chrono::milliseconds(0));
  return lock.failure().empty() ? std::nullopt : std::optional(trouble_text(options, "written", lock.failure()));
}

bool FileStore::find(std::string_view key, const Take& take) {
  return look_up(key, take) == Stored::taken;
}

FileStore::Stored FileStore::look_up(std::string_view key, const Take& take) {
  if (!is_key(key)) throw Error(ErrorCode::internal, fmt::format("'{}' is not a key of a store", key));
  const ReadFile file = read_and_touch(path_of(key), options_.limit_bytes, options_.shared);
  if (!file.failure.empty()) give_up("read", file.failure);
  if (!file.bytes) return Stored::missing;
  const std::optional<std::string_view> content = entry_content(key, *file.bytes);
  if (!content || !take(*content)) return Stored::damaged;
  ++found_;
  return Stored::taken;
}

std::string FileStore::make_entry(Stored stored, const Make& make) {
  if (stored == Stored::damaged) ++damaged_;
  ++made_;
  return make();
}

void FileStore::publish(std::string_view key, const std::string& content) {
  const std::string header = entry_header(key, content);
  if (header.size() + content.size() > options_.limit_bytes) return;
  if (const auto failure = write_atomically(path_of(key), rights_of_files(options_), header, content)) {
    give_up("written", *failure);
    return;
  }
  // To look at every file for each new one would take longer and longer. Eight processes together fill what was free.
  constexpr uint64_t share_of_room = 8;
  if ((added_ += header.size() + content.size()) * share_of_room >= room_) stay_within_limit();
}

void FileStore::stay_within_limit() {
  // Where another process evicts for longer than this, it does this one's work.
  const KeyLock lock = lock_of(options_, KeyLock::eviction, std::chrono::seconds(1));
  if (!lock.is_held()) return;
  std::vector<StoredFile> files = files_in(options_.folder);
  const auto remove = [this](const StoredFile& file) {
    std::error_code failed;
    if (fs::remove(file.path, failed)) ++evicted_;
  };
  const std::optional<fs::file_time_type> now = time_there(options_.folder + "/" + lock_name);
  uint64_t total = 0;
  for (const StoredFile& file : files) {
    if (!file.aside)
      total += file.bytes;
    else if (now && *now - file.used > abandoned_after)
      remove(file);
  }
  if (total > options_.limit_bytes) {
    std::sort(files.begin(), files.end(), [](const StoredFile& a, const StoredFile& b) { return a.used < b.used; });
    const auto enough = static_cast<uint64_t>(kept_share * static_cast<double>(options_.limit_bytes));
    for (const StoredFile& file : files) {
      if (total <= enough) break;
      if (file.aside) continue;
      remove(file);
      total -= file.bytes;
    }
  }
  added_ = 0;
  room_ = options_.limit_bytes - total;
}

void FileStore::give_up(std::string_view done, const std::string& why) {
  if (!writable_.exchange(false)) return;
  const std::string message = trouble_text(options_, done, why);
  if (announce_)
    announce_(message);
  else
    fmt::print(stderr, "kiln: {}\n", message);
}

}  // namespace kiln::store
