// Flushes (fsync) that are watched, and fail where a test wants it: what promises a file must write it aside, flush it,
// and only then give it its name. failing_flush.cpp takes the place of the C library's function in the test program.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace kiln::testing_support {

/// Files flushed while the object lives. One at a time.
class Flushes {
 public:
  enum class Of { nothing, files };
  /// `failing`: which flushes fail, as those of a disk that cannot write. Flushes of folders work.
  explicit Flushes(Of failing = Of::nothing);
  ~Flushes();
  Flushes(const Flushes&) = delete;
  Flushes& operator=(const Flushes&) = delete;

  /// The paths that were flushed, or were to be, in order.
  std::vector<std::string> paths() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

/// Expects that `write` leaves `path` as it was where the flush fails, with nothing beside it, and says so by returning
/// false; and that it flushes what it writes before that is at `path` where it works. `path` holds something before.
void expect_flushed_before_it_is_there(const std::string& path, bool (*write)(const std::string& path));

}  // namespace kiln::testing_support
