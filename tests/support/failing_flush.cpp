#include "failing_flush.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

namespace kiln::testing_support {

struct Flushes::State {
  Of failing;
  std::vector<std::string> paths;
};

namespace {

namespace fs = std::filesystem;

std::mutex mutex;
Flushes::State* watching = nullptr;  // guarded by mutex

// Whether this flush is to fail.
bool fails(int descriptor) {
  const std::lock_guard lock(mutex);
  if (watching == nullptr) return false;
  std::error_code ignored;
  watching->paths.push_back(fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored));
  struct stat status {};
  const bool is_file = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  return is_file && watching->failing == Flushes::Of::files;
}

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

long files_beside(const fs::path& path) {
  return std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()) - 1;
}

}  // namespace

Flushes::Flushes(Of failing) : state_(std::make_unique<State>(State{failing, {}})) {
  const std::lock_guard lock(mutex);
  watching = state_.get();
}

Flushes::~Flushes() {
  const std::lock_guard lock(mutex);
  watching = nullptr;
}

std::vector<std::string> Flushes::paths() const {
  const std::lock_guard lock(mutex);
  return state_->paths;
}

void expect_flushed_before_it_is_there(const std::string& path, bool (*write)(const std::string& path)) {
  std::ofstream(path, std::ios::binary) << "what was there";
  const long beside = files_beside(path);
  {
    const Flushes broken(Flushes::Of::files);
    EXPECT_FALSE(write(path)) << "it does not say that it could not write " << path;
    EXPECT_FALSE(broken.paths().empty());
  }
  EXPECT_EQ(content_of(path), "what was there");
  EXPECT_EQ(files_beside(path), beside) << "a piece of it was left";

  const Flushes watched;
  EXPECT_TRUE(write(path));
  EXPECT_NE(content_of(path), "what was there");
  ASSERT_FALSE(watched.paths().empty());
  EXPECT_NE(watched.paths().front(), path) << "it was there before it was on the disk";
  EXPECT_EQ(fs::path(watched.paths().front()).parent_path(), fs::path(path).parent_path());
}

}  // namespace kiln::testing_support

extern "C" int fsync(int descriptor) {
  if (kiln::testing_support::fails(descriptor)) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}
