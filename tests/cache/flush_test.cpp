// Packs are on the disk before they have their name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/failing_flush.h"
#include "cache_fixtures.h"
#include "kiln/base/error.h"
#include "kiln/cache/pack.h"

namespace kiln::cache::test::flush_test {
namespace {

using testing_support::Flushes;

Pack a_pack() {
  return make_pack({h200()}, {timed_record(request_line(1), "TILE=32", 1e-5)});
}

TEST(PackFlush, IsBeforeTheFileIsThere) {
  const ScratchFolder folder;
  testing_support::expect_flushed_before_it_is_there(folder.file("a.pack"), [](const std::string& path) {
    try {
      write_pack_file(path, a_pack(), "1");
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io_error);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("cannot write the pack " + path));
      return false;
    }
  });
}

TEST(PackFlush, IsOfTheFolderAsWellWhichHoldsTheName) {
  const ScratchFolder folder;
  const Flushes flushes;
  write_pack_file(folder.file("a.pack"), a_pack(), "1");
  EXPECT_EQ(flushes.paths().size(), 2u);
  EXPECT_EQ(flushes.paths().back(), folder.path());
}

}  // namespace
}  // namespace kiln::cache::test::flush_test
