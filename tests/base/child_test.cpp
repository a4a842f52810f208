#include "kiln/base/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "../support/interrupted_calls.h"
#include "kiln/base/error.h"
#include "kiln/base/file_descriptor.h"

namespace kiln::child_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

ChildProgram shell(const std::string& script) {
  return {.path = "/bin/sh", .arguments = {"-c", script}};
}

// How a shell that runs `script` ends.
std::string end_of(const std::string& script) {
  Child child(shell(script));
  const auto end = child.wait_for(seconds(20));
  return end ? end->text() : "it runs";
}

TEST(Child, SaysHowItEnded) {
  EXPECT_EQ(end_of("exit 0"), "exit code 0");
  EXPECT_EQ(end_of("exit 3"), "exit code 3");
  EXPECT_EQ(end_of("kill -9 $$"), "signal 9 (Killed)");
}

TEST(Child, NamesTheProgramThatCannotBeStarted) {
  try {
    const Child child({.path = "/nowhere/kiln"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io_error);
    EXPECT_THAT(error.message(), HasSubstr("/nowhere/kiln cannot be started"));
    EXPECT_THAT(error.message(), HasSubstr("No such file or directory"));
  }
}

TEST(Child, IsWaitedForNoLongerThanAsked) {
  Child child(shell("exec sleep 60"));
  EXPECT_FALSE(child.wait_for(milliseconds(0)));
  EXPECT_FALSE(child.wait_for(milliseconds(20)));
  EXPECT_EQ(child.kill().text(), "signal 9 (Killed)");
  EXPECT_EQ(child.kill().text(), "signal 9 (Killed)") << "again";
  EXPECT_EQ(child.wait_for(milliseconds(0)).value().text(), "signal 9 (Killed)");
}

TEST(Child, EndsWithItsObject) {
  pid_t pid = -1;
  {
    Child child(shell("exec sleep 60"));
    Child moved(std::move(child));
    pid = moved.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(Child, HoldsNoDescriptorOfTheApplication) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // without O_CLOEXEC, as most code makes them
  const Child child(shell("exec sleep 60"));
  ::close(ends[1]);
  pollfd hung_up{ends[0], POLLIN, 0};
  EXPECT_EQ(::poll(&hung_up, 1, 5000), 1) << "the child holds the other end";
  ::close(ends[0]);
}

// The three standard ones, however low the number of another is.
TEST(Child, HasThreeDescriptors) {
  const FileDescriptor inherited(::fcntl(STDERR_FILENO, F_DUPFD, 3));  // the lowest free number, without O_CLOEXEC
  ASSERT_TRUE(inherited.is_open());
  const Child child({.path = "/bin/sleep", .arguments = {"60"}});
  const std::set<std::string> standard = {"0", "1", "2"};
  std::set<std::string> numbers;
  const auto give_up = std::chrono::steady_clock::now() + seconds(10);
  while (numbers != standard &&
         std::chrono::steady_clock::now() < give_up) {  // while it loads it has its libraries open
    numbers.clear();
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(child.pid()) + "/fd")) {
      numbers.insert(entry.path().filename());
    }
  }
  EXPECT_EQ(numbers, standard);
}

// An interrupt from the terminal goes to a group.
TEST(Child, IsInItsParentsGroupUnlessItIsToHaveItsOwn) {
  ChildProgram program{.path = "/bin/sleep", .arguments = {"60"}};
  EXPECT_EQ(::getpgid(Child(program).pid()), ::getpgid(0));
  program.own_group = true;
  const Child child(program);
  EXPECT_EQ(::getpgid(child.pid()), child.pid());
}

TEST(Child, IsWaitedForWithoutPidfds) {
  for (const int error : {ENOSYS, EPERM, 0}) {
    const testing_support::NoPidfds old_kernel(error);
    EXPECT_EQ(end_of("exit 0"), "exit code 0") << error;
    EXPECT_EQ(end_of("exit 3"), "exit code 3") << error;
    EXPECT_EQ(end_of("kill -9 $$"), "signal 9 (Killed)") << error;
    Child child(shell("exec sleep 60"));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(child.wait_for(milliseconds(0))) << error;
    EXPECT_FALSE(child.wait_for(milliseconds(20))) << error;
    EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(20)) << error;
    EXPECT_EQ(child.kill().text(), "signal 9 (Killed)") << error;
    EXPECT_EQ(child.kill().text(), "signal 9 (Killed)") << error;
  }
}

// Somebody else has waited for it: its number may be another process' by now, which gets no signal.
TEST(Child, WhoseNumberMayBeAnothersIsLeftAlone) {
  const testing_support::NoPidfds gone(ESRCH);
  pid_t pid = -1;
  {
    Child child(shell("exec sleep 60"));
    pid = child.pid();
    EXPECT_THAT(child.wait_for(milliseconds(0)).value().text(), HasSubstr("not known"));
    EXPECT_FALSE(child.kill().succeeded());
  }
  EXPECT_EQ(::kill(pid, 0), 0) << "it got a signal";
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(Child, IsWaitedForThroughSignals) {
  const testing_support::InterruptedCalls interrupted;
  EXPECT_EQ(end_of("exit 3"), "exit code 3");
  Child child(shell("exec sleep 60"));
  EXPECT_EQ(child.kill().text(), "signal 9 (Killed)");
  EXPECT_GE(testing_support::InterruptedCalls::count(), 2);
}

// Signals of a process that are blocked ("SigBlk") or ignored ("SigIgn"), a bit each; without the two that are glibc's
// own.
uint64_t signals_of(pid_t process, const std::string& field) {
  constexpr uint64_t internal = uint64_t{3} << 31;
  std::ifstream stream("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(field + ":"))
      return std::stoull(line.substr(line.find_last_of(" \t") + 1), nullptr, 16) & ~internal;
  }
  ADD_FAILURE() << "no " << field;
  return 0;
}

TEST(Child, StartsWithoutBlockedAndIgnoredSignals) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = std::signal(SIGPIPE, SIG_IGN);
  Child child({.path = "/bin/sleep", .arguments = {"60"}});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::signal(SIGPIPE, handler);
  EXPECT_EQ(signals_of(child.pid(), "SigBlk"), 0U);
  EXPECT_EQ(signals_of(child.pid(), "SigIgn"), 0U);
  ::kill(child.pid(), SIGTERM);
  EXPECT_EQ(child.wait_for(seconds(20)).value().text(), "signal 15 (Terminated)");
}

TEST(Child, GetsTheDescriptorsThatItIsToHave) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ChildProgram program = shell("cat; echo error >&2");
  const std::string input = testing::TempDir() + "input.txt";
  std::ofstream(input) << "input\n";
  program.input = ::open(input.c_str(), O_RDONLY | O_CLOEXEC);
  program.output = program.error = ends[1];
  Child child(program);
  ::close(program.input);
  ::close(ends[1]);
  EXPECT_TRUE(child.wait_for(seconds(20)).value().succeeded());
  char text[64] = {};
  EXPECT_GT(::read(ends[0], text, sizeof text - 1), 0);
  EXPECT_STREQ(text, "input\nerror\n");
  ::close(ends[0]);
}

// A process that was started without standard input opens its first file as number 0.
TEST(Child, GetsADescriptorWhoseNumberIs0) {
  const std::string path = testing::TempDir() + "output.txt";
  const int saved = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  ::close(STDIN_FILENO);
  ASSERT_EQ(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600), STDIN_FILENO);
  ChildProgram program = shell("echo written");
  program.output = STDIN_FILENO;
  EXPECT_TRUE(Child(program).wait_for(seconds(20)).value().succeeded());
  ::close(STDIN_FILENO);
  if (saved >= 0) {
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
  }
  std::string line;
  std::ifstream(path) >> line;
  EXPECT_EQ(line, "written");
}

// An application that ignores SIGCHLD: the system takes the ends of its children.
class IgnoredChildren : public testing::Test {
 protected:
  ~IgnoredChildren() override { std::signal(SIGCHLD, before_); }

  void (*before_)(int) = std::signal(SIGCHLD, SIG_IGN);
};

TEST_F(IgnoredChildren, EndAndNobodyKnowsHow) {
  EXPECT_THAT(end_of("exit 3"), HasSubstr("ignores SIGCHLD"));
  EXPECT_THAT(end_of("exit 0"), HasSubstr("ignores SIGCHLD")) << "no success, either";
  Child child(shell("exec sleep 60"));
  EXPECT_FALSE(child.wait_for(milliseconds(20)));
  EXPECT_FALSE(child.kill().succeeded());
}

// An application with a thread that waits for all children, as some init processes of containers have.
class Reaper {
 public:
  ~Reaper() { end(); }
  // How many it took.
  int end() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
    return taken_;
  }

 private:
  std::atomic<bool> done_ = false;
  int taken_ = 0;
  std::thread thread_{[this] {
    while (!done_) {
      if (::waitpid(-1, nullptr, WNOHANG) > 0) ++taken_;
    }
  }};
};

TEST(ChildOfAnApplicationThatReaps, IsNeverTakenForOneThatSucceeded) {
  Reaper reaper;
  int unknown = 0;
  for (int i = 0; i < 50; ++i) {
    Child child(shell("exit 3"));
    const auto end = child.wait_for(seconds(20));
    ASSERT_TRUE(end);
    EXPECT_FALSE(end->succeeded());
    if (end->kind == ChildEnd::Kind::unknown) ++unknown;
    EXPECT_EQ(child.kill().kind, end->kind) << "nothing is left to be killed";
  }
  EXPECT_EQ(unknown, reaper.end());
}

}  // namespace
}  // namespace kiln::child_test
