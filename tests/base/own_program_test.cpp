// Where a program lies, and what it believes of its environment: by a program of its own (own_probe.cpp).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kiln/base/own_folders.h"
#include "kiln/base/variables.h"

namespace kiln::own_program_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Lines that the program at `path` prints when it is started as `name` in `folder` with these variables and no others.
std::vector<std::string> lines_of(const std::string& path, const std::string& name, const fs::path& folder,
                                  std::vector<std::string> variables) {
  const std::string out = testing::TempDir() + "own_probe.txt";
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || ::dup2(file, STDOUT_FILENO) < 0 || ::chdir(folder.c_str()) != 0) ::_exit(126);
    std::string word = name;
    std::vector<char*> argv = {word.data(), nullptr}, envp;
    for (std::string& variable : variables) envp.push_back(variable.data());
    envp.push_back(nullptr);
    ::execve(path.c_str(), argv.data(), envp.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::ifstream stream(out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> those_that_begin(const std::vector<std::string>& lines, const std::string& word) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    if (line.starts_with(word + " ")) found.push_back(line.substr(word.size() + 1));
  }
  return found;
}

TEST(OwnFolders, AreThoseOfTheBinaryWhateverItsNameAndTheWorkingDirectory) {
  const std::string home = fs::canonical(fs::path(OWN_PROBE).parent_path());
  const fs::path elsewhere = testing::TempDir() + "elsewhere";
  fs::create_directories(elsewhere);
  // The caller chooses argv[0].
  for (const std::string& name :
       {std::string("own_probe"), std::string("./own_probe"), std::string(), (elsewhere / "own_probe").string()}) {
    EXPECT_THAT(those_that_begin(lines_of(OWN_PROBE, name, elsewhere, {}), "folder"), ElementsAre(home)) << name;
  }
}

TEST(OwnFolders, OfALibraryAreItsOwnAndThoseOfTheProgram) {
  const fs::path home = fs::canonical(fs::path(OWN_PROBE).parent_path());
  EXPECT_THAT(those_that_begin(lines_of(OWN_PROBE, "own_probe", "/", {}), "library"),
              ElementsAre((home / "own_library").string(), home.string()));
}

TEST(OwnFolders, AreBehindLinks) {
  const std::string home = fs::canonical(fs::path(OWN_PROBE).parent_path());
  const std::string link = testing::TempDir() + "linked_probe";
  fs::remove(link);
  fs::create_symlink(OWN_PROBE, link);
  EXPECT_THAT(those_that_begin(lines_of(link, link, testing::TempDir(), {}), "folder"), ElementsAre(home));
}

// Variables of somebody who wants a privileged program to run or to write something of theirs.
const std::vector<std::string> hostile = {
    "KILN_DRIVER=/tmp/x.so",  "KILN_CACHE=",    "KILN_DRIVR=cuda", "PATH=/tmp/bin", "CUDA_HOME=/tmp/cuda",
    "VIRTUAL_ENV=/tmp/env",   "HOME=/tmp/home", "TMPDIR=/tmp/t",   "COLUMNS=7",     "XDG_CACHE_HOME=/tmp/cache",
    "XDG_DATA_DIRS=/tmp/data"};

TEST(Variables, AreReadWhereNoRightsWereRaised) {
  const auto lines = lines_of(OWN_PROBE, "own_probe", testing::TempDir(), hostile);
  EXPECT_THAT(lines, Contains("privileged false"));
  EXPECT_THAT(lines, Contains("variable KILN_DRIVER=/tmp/x.so"));
  EXPECT_THAT(those_that_begin(lines, "named"), ElementsAre("KILN_DRIVER", "KILN_CACHE", "KILN_DRIVR"));
  EXPECT_THAT(those_that_begin(lines, "child's"), testing::SizeIs(hostile.size()));
  EXPECT_THAT(lines, Contains(StartsWith("error KILN_CACHE is set but empty")));
}

// A program of root with the HOME of another user, as by `sudo -E`, and folders that anybody can write.
TEST(PlacesOfTheCache, AreLeftOutWhereAnotherUserDecidesAboutThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  std::string name = "/tmp/kiln_places_XXXXXX";
  const fs::path folder = ::mkdtemp(name.data());
  fs::create_directories(folder / "home/.cache/kiln");
  fs::create_directories(folder / "open");
  constexpr uid_t stranger = 4711;
  for (const char* given : {"home", "home/.cache", "home/.cache/kiln"})
    ASSERT_EQ(::chown((folder / given).c_str(), stranger, stranger), 0);
  ASSERT_EQ(::chmod((folder / "open").c_str(), 0777), 0);
  const std::string home = folder / "home", open = folder / "open";

  const auto of_another = lines_of(OWN_PROBE, "own_probe", "/", {"HOME=" + home});
  EXPECT_THAT(of_another, AllOf(Contains("cache none"), Contains("database none"), Contains("kernels none"),
                                Contains("refused database")));
  EXPECT_THAT(those_that_begin(of_another, "left out"),
              ElementsAre(AllOf(StartsWith("the cache folder " + home + "/.cache/kiln is not used, because " + home +
                                           " belongs to user 4711"),
                                HasSubstr("belong to root"))));

  const std::vector<std::string> everything = {"HOME=" + home, "KILN_CACHE=" + open + "/tuning.db",
                                               "KILN_KERNEL_STORE=" + open + "/kernels"};
  const auto of_all = lines_of(OWN_PROBE, "own_probe", "/", everything);
  EXPECT_THAT(of_all, AllOf(Contains("database off"), Contains("kernels off"), Contains("refused database")));
  EXPECT_THAT(those_that_begin(of_all, "left out"),
              ElementsAre(AllOf(StartsWith("the tuning database " + open + "/tuning.db is not used"),
                                HasSubstr(open + " can be written by others"), HasSubstr("--db")),
                          AllOf(StartsWith("the store of compiled kernels " + open + "/kernels is not used"),
                                HasSubstr("KILN_KERNEL_STORE_SHARED=1"))));

  // Stores that the user agreed to share, turned off, or has for itself.
  auto shared = everything;
  shared.emplace_back("KILN_KERNEL_STORE_SHARED=1");
  EXPECT_THAT(lines_of(OWN_PROBE, "own_probe", "/", shared), Contains("kernels " + open + "/kernels"));
  ASSERT_EQ(::chmod((folder / "open").c_str(), 0700), 0);
  const auto of_its_own = lines_of(OWN_PROBE, "own_probe", "/", everything);
  EXPECT_THAT(of_its_own, AllOf(Contains("database " + open + "/tuning.db"), Contains("kernels " + open + "/kernels"),
                                Not(Contains(StartsWith("left out ")))));
  EXPECT_THAT(of_its_own, Contains("refused none"));
  // A database of its own, and the kernels where another user decides about them; and the other way round.
  EXPECT_THAT(lines_of(OWN_PROBE, "own_probe", "/", {everything[0], everything[1]}),
              AllOf(Contains("cache none"), Contains("database " + open + "/tuning.db"), Contains("refused none"),
                    Contains(StartsWith("left out the cache folder"))));
  EXPECT_THAT(lines_of(OWN_PROBE, "own_probe", "/", {everything[0], everything[2]}),
              AllOf(Contains("cache none"), Contains("kernels " + open + "/kernels"), Contains("refused database"),
                    Contains(StartsWith("left out the cache folder"))));
  EXPECT_THAT(lines_of(OWN_PROBE, "own_probe", "/", {"KILN_CACHE=off", "KILN_KERNEL_STORE=off"}),
              Not(Contains(StartsWith("left out "))));

  // A database that is another user's link, in a folder of one's own.
  fs::create_directories(folder / "own/.cache/kiln");
  fs::create_symlink(folder / "home/theirs.db", folder / "own/.cache/kiln/tuning.db");
  const std::string home_of_its_own = folder / "own", link = home_of_its_own + "/.cache/kiln/tuning.db";
  ASSERT_EQ(::lchown(link.c_str(), stranger, stranger), 0);
  const auto linked = lines_of(OWN_PROBE, "own_probe", "/", {"HOME=" + home_of_its_own});
  EXPECT_THAT(linked, AllOf(Contains("database off"), Contains("kernels none"),
                            Contains("cache " + home_of_its_own + "/.cache")));
  EXPECT_THAT(those_that_begin(linked, "left out"),
              ElementsAre(StartsWith("the tuning database " + link + " is not used, because the link " + link +
                                     " belongs to user 4711")));
  fs::remove_all(folder);
}

TEST(Variables, OfAPrivilegedProgramAreNone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a program of another group to run as (setgid)";
  const std::string program = testing::TempDir() + "privileged_probe";
  fs::copy_file(OWN_PROBE, program, fs::copy_options::overwrite_existing);
  constexpr gid_t other_group = 65534;
  ASSERT_EQ(::chown(program.c_str(), 0, other_group), 0);
  ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  const auto lines = lines_of(program, "kiln", testing::TempDir(), hostile);
  if (std::ranges::find(lines, "privileged true") == lines.end()) {
    GTEST_SKIP() << testing::TempDir() << " is on a file system without setgid (mount option nosuid)";
  }
  EXPECT_THAT(lines, AllOf(Not(Contains(StartsWith("variable "))), Not(Contains(StartsWith("named "))),
                           Not(Contains(StartsWith("child's "))), Not(Contains(StartsWith("unknown ")))));
  EXPECT_THAT(lines, AllOf(Contains("driver none"), Contains("cache none"), Contains("data /usr/local/share"),
                           Contains("data /usr/share")));
}

}  // namespace
}  // namespace kiln::own_program_test
