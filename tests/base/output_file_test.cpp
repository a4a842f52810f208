// Output files replace files, follow links, and leave alone what is no file.
#include "kiln/base/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "../support/failing_flush.h"
#include "../support/file_locks.h"
#include "../support/interrupted_calls.h"
#include "kiln/base/error.h"
#include "kiln/base/file_descriptor.h"

namespace kiln::output_file_test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    std::string name = testing::TempDir() + "kiln_output_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string content(const std::string& name) const {
    std::ifstream stream(path(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  static void publish(const std::string& path, std::string_view text) {
    OutputFile file("the page", path);
    file.write(text);
    file.publish();
  }
  static std::string refusal(const std::string& path) {
    try {
      const OutputFile file("the page", path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io_error);
      return error.what();
    }
    return "none";
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, KeepsWhatWasThereUntilTheNewOneIsComplete) {
  const std::string page = put("page", "before");
  {
    OutputFile unfinished("the page", page);
    unfinished.write("half");
  }
  EXPECT_EQ(content("page"), "before");
  publish(page, "after");
  EXPECT_EQ(content("page"), "after");
  EXPECT_EQ(files(), 1u) << "nothing is left beside it";
}

// Measurements are not lost to a path that was named twice.
TEST_F(OutputFileTest, ADatabaseIsNotReplaced) {
  const std::string database = folder_ / "tuning.db", magic("SQLite format 3\0", 16);
  std::ofstream(database, std::ios::binary) << magic << "and pages";
  EXPECT_THROW(OutputFile("the page", database), Error);
  EXPECT_THROW(require_replaceable("the page", database), Error);
  const std::string late = folder_ / "late.db";
  OutputFile page("the page", late);
  std::ofstream(late, std::ios::binary) << magic;
  EXPECT_THROW(page.publish(), Error);
  EXPECT_EQ(fs::file_size(late), magic.size());
  const std::string text = folder_ / "text";
  std::ofstream(text) << "SQLite format";
  require_replaceable("the page", text);
}

// A process that closes any descriptor of a file gives up all POSIX locks that it has on the file: SQLite's, if that
// has the database open.
TEST_F(OutputFileTest, LocksOfThisProcessStayOnAFileThatIsLookedAt) {
  const std::string magic("SQLite format 3\0", 16);
  for (const std::string& content : {magic, std::string("a page")}) {
    const std::string file = put("file", content);
    const FileDescriptor open(::open(file.c_str(), O_RDWR));
    ASSERT_TRUE(testing_support::lock_file(open.get()));
    ASSERT_FALSE(testing_support::free_for_others(file));
    EXPECT_EQ(refusal(file) == "none", content != magic);
    EXPECT_FALSE(testing_support::free_for_others(file)) << content;
  }
}

// Neither another file's descriptor nor its content is taken for the one that is looked at.
TEST_F(OutputFileTest, OtherOpenFilesDoNotCount) {
  const std::string database = put("database", std::string("SQLite format 3\0", 16)), page = put("page", "text");
  const FileDescriptor first(::open(database.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(refusal(page), "none");
  const FileDescriptor second(::open(page.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(refusal(page), "none");
  EXPECT_THAT(refusal(database), HasSubstr("it is a database"));
}

// Python's open(path, "w"), whose name is given to Kiln while it is open.
TEST_F(OutputFileTest, AFileThatThisProcessHasOpenForWritingAloneIsReplaced) {
  const std::string file = put("file", "before");
  const FileDescriptor open(::open(file.c_str(), O_WRONLY));
  publish(file, "after");
  EXPECT_EQ(content("file"), "after");
}

TEST_F(OutputFileTest, IsWrittenAndReadThroughSignals) {
  const std::string database = put("database", std::string("SQLite format 3\0", 16)), page = path("page");
  {
    const testing_support::InterruptedCalls interrupted;
    publish(page, "text");
    EXPECT_THAT(refusal(database), HasSubstr("it is a database"));
    EXPECT_EQ(refusal(page), "none") << "it ends before a database's first words do";
    EXPECT_GE(testing_support::InterruptedCalls::count(), 2);
  }
  EXPECT_EQ(content("page"), "text");
}

TEST_F(OutputFileTest, AFileSystemThatTakesNothingIsFull) {
  OutputFile file("the page", path("page"));
  const testing_support::WritesOfNothing full;
  try {
    file.write("text");
    ADD_FAILURE() << "it was written";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("No space left on device"));
  }
}

// The system may have dropped what it could not write: the file that was there is the only whole one.
TEST_F(OutputFileTest, WhatMayBeLostReplacesNothing) {
  testing_support::expect_flushed_before_it_is_there(put("page", "before"), [](const std::string& page) {
    try {
      publish(page, "after");
      return true;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("cannot write the page " + page + ": "));
      return false;
    }
  });
}

TEST_F(OutputFileTest, AFolderThatIsNotThereIsKnownAtOnce) {
  EXPECT_THAT(refusal(path("no/page")), HasSubstr("cannot write the page " + path("no/page") + ": No such file"));
}

TEST_F(OutputFileTest, FollowsLinksAndLeavesThem) {
  fs::create_directory(folder_ / "elsewhere");
  put("elsewhere/target", "before");
  fs::create_symlink("elsewhere/target", folder_ / "relative");
  fs::create_symlink(folder_ / "relative", folder_ / "absolute");
  publish(path("absolute"), "after");
  EXPECT_EQ(content("elsewhere/target"), "after");
  EXPECT_EQ(fs::read_symlink(folder_ / "absolute"), folder_ / "relative");
  EXPECT_EQ(fs::read_symlink(folder_ / "relative"), "elsewhere/target");
}

TEST_F(OutputFileTest, MakesWhatALinkPointsTo) {
  fs::create_symlink("new", folder_ / "link");
  publish(path("link"), "text");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content("new"), "text");
}

TEST_F(OutputFileTest, LinksInACircleAreRefused) {
  fs::create_symlink("b", folder_ / "a");
  fs::create_symlink("a", folder_ / "b");
  EXPECT_THAT(refusal(path("a")), HasSubstr("symbolic links"));
  EXPECT_EQ(files(), 2u);
}

// A device would go the same way: a rename would put a file in its place.
TEST_F(OutputFileTest, WhatIsNoFileIsRefusedAndStays) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder_ / "link");
  for (const char* name : {"pipe", "link"}) {
    EXPECT_THAT(refusal(path(name)), HasSubstr("cannot write the page " + path(name) + ": it is a pipe, not a file"));
    EXPECT_THROW(require_replaceable("the page", path(name)), Error);
  }
  EXPECT_THAT(refusal(folder_.string()), HasSubstr("it is a folder, not a file"));
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  EXPECT_EQ(files(), 2u);
}

TEST_F(OutputFileTest, EachKindOfNoFileHasItsName) {
  EXPECT_EQ(kind_of_no_file(fs::file_type::character), "a device");
  EXPECT_EQ(kind_of_no_file(fs::file_type::block), "a device");
  EXPECT_EQ(kind_of_no_file(fs::file_type::socket), "a socket");
  EXPECT_EQ(kind_of_no_file(fs::file_type::regular), "");
  EXPECT_EQ(kind_of_no_file(fs::file_type::not_found), "");
}

}  // namespace
}  // namespace kiln::output_file_test
