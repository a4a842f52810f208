// KeyLock: the right to make one entry of a store, among all threads and processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "kiln/base/file_descriptor.h"

namespace kiln::store {

/// A lock on one byte of the store's lock file: the byte whose number is the key's. The file stays empty and is the
/// only one, so there is nothing to clean up. The lock is of the open file ("open file description" locks of fcntl(2)),
/// so it excludes threads too, and the kernel releases it when its holder dies.
class KeyLock {
 public:
  /// The byte that serialises eviction. Keys have smaller numbers.
  static constexpr int64_t eviction = int64_t{1} << 62;

  /// The number of a key: its first 60 bits.
  static int64_t number_of(std::string_view key);

  /// Waits up to `patience` for the lock on byte `number` of `path`, which is created with the rights `mode` less
  /// the umask if it is missing. Afterwards failure() tells whether the file could not be opened; without a failure,
  /// the lock may still not be held: another one held it too long, or the file system has no locks.
  KeyLock(const std::string& path, mode_t mode, int64_t number, std::chrono::milliseconds patience);

  const std::string& failure() const { return failure_; }
  bool is_held() const { return held_; }

 private:
  FileDescriptor file_;
  std::string failure_;
  bool held_ = false;
};

}  // namespace kiln::store
