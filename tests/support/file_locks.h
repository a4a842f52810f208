// POSIX locks on files, as SQLite has them.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace kiln::testing_support {

/// Whether another process could lock what this one has locked.
inline bool free_for_others(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    const int file = ::open(path.c_str(), O_RDWR);
    ::_exit(::fcntl(file, F_SETLK, &lock) == 0 ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 1;
}

/// Locks the file of `descriptor` for this process, and says whether that worked.
inline bool lock_file(int descriptor) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  return ::fcntl(descriptor, F_SETLK, &lock) == 0;
}

}  // namespace kiln::testing_support
