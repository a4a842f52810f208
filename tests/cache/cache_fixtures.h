// Tools shared by the cache's tests: records, scratch folders, announcements, child processes.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/cache/record.h"

namespace kiln::cache::test {

/// A folder that goes with the object.
class ScratchFolder {
 public:
  enum class Where {
    disk,
    memory,  ///< On a file system without a disk where there is one: for thousands of files that are flushed.
  };
  explicit ScratchFolder(Where where = Where::disk);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);

/// Keeps what a database announces.
struct Announcements {
  std::vector<Announcement> seen;
  Announce listener() {
    return [this](const Announcement& a) { seen.push_back(a); };
  }
  /// Announcements of damaged rows that are left out; the others are about files that are not used as asked.
  std::size_t of_rows() const;
};

DeviceEntry h200();      ///< sm_90, 132 SMs.
DeviceEntry h100();      ///< sm_90, 114 SMs.
DeviceEntry rtx4090();   ///< sm_89, 128 SMs.
DeviceEntry emulated();  ///< sm_90, 132 SMs, emulated.

/// A timed record with every field set. `index` varies request text where the caller wants many.
Record timed_record(std::string_view request, std::string_view config, double seconds);
std::string request_line(int index);

/// An open database that knows the devices above.
Database with_devices(Database database);
/// One in memory that holds `records` of them.
Database database_of(const std::vector<Record>& records);
/// The text of a pack with those devices and `records`.
std::string pack_text_of(const std::vector<Record>& records);

/// Text of an Error of this code; fails the test if `action` throws nothing or something else.
std::string error_of(ErrorCode code, const std::function<void()>& action);

/// Any record that the cache must take, awkward texts and numbers included.
Record random_record(std::mt19937_64& random, const std::vector<DeviceEntry>& devices);

/// Runs `body` in a child process, as a user without privileges where the tests run as root (to whom nothing is
/// read-only). Its return value is the exit status; 99 if it throws.
int in_child(const std::function<int()>& body, bool without_privileges);

}  // namespace kiln::cache::test
