#include "kiln/base/trusted_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace kiln::trusted_place_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t stranger = 4711;

class TrustedPlace : public testing::Test {
 protected:
  TrustedPlace() {
    std::string name = "/tmp/kiln_trusted_place_XXXXXX";  // where other users may look, too
    folder_ = ::mkdtemp(name.data());
    fs::create_directories(folder_ / "kiln");
    std::ofstream(folder_ / "kiln/tuning.db") << "what was measured";
    set_rights("kiln", 0700);
    set_rights("kiln/tuning.db", 0600);
  }
  ~TrustedPlace() override { fs::remove_all(folder_); }

  void set_rights(const std::string& name, mode_t mode) const {
    ASSERT_EQ(::chmod((folder_ / name).c_str(), mode), 0) << name;
  }
  // Only root may do that.
  void give_away(const std::string& name, uid_t user = stranger, gid_t group = stranger) const {
    ASSERT_EQ(::lchown((folder_ / name).c_str(), user, group), 0) << name;
  }
  // Why it is not to be trusted; empty if it is. "@" stands for the test's folder.
  std::string file(const std::string& name) const { return why(name, PlaceKind::file); }
  std::string folder(const std::string& name) const { return why(name, PlaceKind::folder); }

  fs::path folder_;

 private:
  std::string why(const std::string& name, PlaceKind kind) const {
    std::string text = why_not_trusted(folder_ / name, kind).value_or("");
    if (const size_t at = text.find(folder_.string()); at != text.npos) text.replace(at, folder_.string().size(), "@");
    return text;
  }
};

TEST_F(TrustedPlace, IsOnesOwn) {
  EXPECT_EQ(folder("kiln"), "");
  EXPECT_EQ(file("kiln/tuning.db"), "");
  EXPECT_EQ(file("kiln/another.db"), "") << "not there yet";
  EXPECT_EQ(folder("new/kiln/kernels"), "") << "not there yet";
  EXPECT_EQ(folder("kiln/../kiln/."), "");
}

TEST_F(TrustedPlace, IsWrittenByNobodyElse) {
  set_rights("kiln", 0777);
  EXPECT_EQ(folder("kiln"), "@/kiln can be written by others");
  EXPECT_EQ(file("kiln/tuning.db"), "@/kiln can be written by others");
  EXPECT_EQ(folder("kiln/kernels"), "@/kiln can be written by others");
  set_rights("kiln", 0700);
  set_rights("kiln/tuning.db", 0606);
  EXPECT_EQ(file("kiln/tuning.db"), "@/kiln/tuning.db can be written by others");
  set_rights("kiln/tuning.db", 0600);
  set_rights("", 0777);
  EXPECT_EQ(folder("kiln"), "@ can be written by others");
}

// As in /tmp, entries of a folder with the sticky bit stay with their owners. A file that appears beside another does
// not.
TEST_F(TrustedPlace, MayLieInAFolderWithTheStickyBit) {
  set_rights("", 01777);
  EXPECT_EQ(folder("kiln"), "");
  EXPECT_EQ(folder("new"), "");
  EXPECT_EQ(file("kiln/tuning.db"), "");
  EXPECT_EQ(file("tuning.db"), "@ can be written by others");
  EXPECT_EQ(folder(""), "@ can be written by others");
}

TEST_F(TrustedPlace, MayBeWrittenByAGroupOfItsOwnersAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to other groups";
  set_rights("kiln", 0770);
  EXPECT_EQ(folder("kiln"), "") << "the group of the owner's number";
  give_away("kiln", 0, 100);
  EXPECT_EQ(folder("kiln"), "@/kiln can be written by its group");
  set_rights("kiln", 0750);
  EXPECT_EQ(folder("kiln"), "");
}

TEST_F(TrustedPlace, BelongsToNobodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  give_away("kiln/tuning.db");
  EXPECT_EQ(file("kiln/tuning.db"), "@/kiln/tuning.db belongs to user 4711");
  EXPECT_EQ(folder("kiln"), "");
  give_away("kiln");
  EXPECT_EQ(folder("kiln"), "@/kiln belongs to user 4711");
  EXPECT_EQ(folder("kiln/kernels"), "@/kiln belongs to user 4711");
  give_away("");
  EXPECT_EQ(folder("kiln"), "@ belongs to user 4711");
}

// The effective user, not the one who started the program.
TEST_F(TrustedPlace, MayBelongToTheEffectiveUserOrToRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  give_away("kiln");
  set_rights("", 0755);
  set_rights("kiln", 0755);
  ASSERT_EQ(::seteuid(stranger), 0);
  const std::string own = folder("kiln"), of_root = file("kiln/tuning.db");
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(own, "");
  EXPECT_EQ(of_root, "");
  ASSERT_EQ(::seteuid(stranger + 1), 0);
  const std::string of_another = folder("kiln");
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(of_another, "@/kiln belongs to user 4711");
}

// A container's root without the host's users: their files show as the user of overflowuid, and nobody there is them.
TEST_F(TrustedPlace, MayLieBelowFoldersOfUsersThatTheNamespaceDoesNotHave) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  set_rights("", 0755);
  give_away("");
  EXPECT_EQ(folder("kiln"), "@ belongs to user 4711") << "where every user has a number";
  const std::string out = testing::TempDir() + "namespace.txt";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(2);
    std::ofstream("/proc/self/uid_map") << "0 0 1";
    std::ofstream(out) << folder("kiln") << '\n' << folder("") << '\n' << file("kiln/tuning.db") << '\n';
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no user namespace can be made here";
  ASSERT_EQ(status, 0);
  std::ifstream lines(out);
  std::string below, itself, file_below;
  std::getline(lines, below);
  std::getline(lines, itself);
  std::getline(lines, file_below);
  EXPECT_EQ(below, "");
  EXPECT_EQ(file_below, "");
  EXPECT_THAT(itself, HasSubstr("belongs to user")) << "what is used must be one's own";
}

TEST_F(TrustedPlace, IsJudgedBehindLinks) {
  fs::create_directory(folder_ / "elsewhere");
  set_rights("elsewhere", 0777);
  fs::create_symlink(folder_ / "elsewhere", folder_ / "link");
  EXPECT_EQ(folder("link"), "@/elsewhere can be written by others");
  EXPECT_EQ(folder("link/kernels"), "@/elsewhere can be written by others");
  set_rights("elsewhere", 0700);
  EXPECT_EQ(folder("link"), "");
  fs::create_symlink("../elsewhere/tuning.db", folder_ / "kiln/linked.db");
  EXPECT_EQ(file("kiln/linked.db"), "");
  fs::create_symlink("itself", folder_ / "itself");
  EXPECT_EQ(folder("itself"), "") << "cannot be opened";
  if (::geteuid() != 0) return;
  give_away("kiln/linked.db");
  EXPECT_EQ(file("kiln/linked.db"), "the link @/kiln/linked.db belongs to user 4711");
}

TEST_F(TrustedPlace, CannotBeJudgedByANameBelowAFile) {
  EXPECT_EQ(folder("kiln/tuning.db/kernels"), "") << "cannot be opened";
}

TEST_F(TrustedPlace, MakesFoldersWithTheRightsThatItIsTold) {
  const mode_t before = ::umask(0);
  EXPECT_EQ(make_folders(folder_ / "a/b", 0700), std::nullopt);
  EXPECT_EQ(make_folders(folder_ / "a/b", 0700), std::nullopt) << "again";
  EXPECT_EQ(make_folders(folder_ / "a/b/c", 0755), std::nullopt);
  ::umask(before);
  const auto rights = [&](const char* name) { return fs::status(folder_ / name).permissions(); };
  EXPECT_EQ(rights("a"), fs::perms(0700));
  EXPECT_EQ(rights("a/b"), fs::perms(0700));
  EXPECT_EQ(rights("a/b/c"), fs::perms(0755));
  EXPECT_THAT(make_folders("/proc/kiln/kernels", 0700).value_or("made"), HasSubstr("No such file"));
}

}  // namespace
}  // namespace kiln::trusted_place_test
