#include "kiln/base/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/variables.h"

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto by_handle = static_cast<idtype_t>(3);  // P_PIDFD, which glibc 2.35 does not name

class Spawning {
 public:
  explicit Spawning(const ChildProgram& program) : program_(program) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;
  ~Spawning() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  pid_t start() {
    put(program_.input, STDIN_FILENO);
    put(program_.output, STDOUT_FILENO);
    put(program_.error, STDERR_FILENO);
    // Descriptors without O_CLOEXEC are the application's: its sockets must not live on in a child.
    require(::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1), "closefrom");
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    require(::posix_spawnattr_setsigmask(&attributes_, &none), "setsigmask");
    require(::posix_spawnattr_setsigdefault(&attributes_, &all), "setsigdefault");
    const int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (program_.own_group ? POSIX_SPAWN_SETPGROUP : 0);
    require(::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)), "setflags");
    std::vector<std::string> words{program_.path};
    words.insert(words.end(), program_.arguments.begin(), program_.arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    require(::posix_spawn(&pid, program_.path.c_str(), &actions_, &attributes_, argv.data(), environment_of_children()),
            "posix_spawn");
    return pid;
  }

 private:
  void put(int descriptor, int place) {
    if (descriptor >= 0) require(::posix_spawn_file_actions_adddup2(&actions_, descriptor, place), "dup2");
  }
  void require(int error, const char* call) const {
    if (error == 0) return;
    throw Error(ErrorCode::io_error,
                fmt::format("{} cannot be started: {}: {}", program_.path, call, std::strerror(error)));
  }

  const ChildProgram& program_;
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::string ChildEnd::text() const {
  switch (kind) {
    case Kind::exited:
      return fmt::format("exit code {}", number);
    case Kind::signalled:
      return fmt::format("signal {} ({})", number, ::strsignal(number));
    case Kind::unknown:
      break;
  }
  return "how is not known, because the application ignores SIGCHLD or waits for all of its children";
}

Child::Child(const ChildProgram& program) : pid_(Spawning(program).start()) {
  handle_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  // Gone already, without its end being ours to ask for: the number may be another process' by now.
  if (!handle_.is_open() && errno == ESRCH) end_ = ChildEnd{};
}

Child::Child(Child&& other) noexcept
    : pid_(other.pid_), handle_(std::move(other.handle_)), end_(std::exchange(other.end_, ChildEnd{})) {}

Child::~Child() {
  kill();
}

// Returns the child's end as far as it is known; nothing while it runs. `wait`: until it has ended.
std::optional<ChildEnd> Child::look(bool wait) {
  while (!end_) {
    siginfo_t info{};
    const int options = WEXITED | (wait ? 0 : WNOHANG);
    const int failed = handle_.is_open() ? ::waitid(by_handle, static_cast<id_t>(handle_.get()), &info, options)
                                         : ::waitid(P_PID, static_cast<id_t>(pid_), &info, options);
    if (failed != 0 && errno == EINTR) continue;
    if (failed != 0 && errno == EINVAL && handle_.is_open()) {  // Linux 5.3 has pidfds and no wait for them
      handle_ = FileDescriptor();
      continue;
    }
    if (failed == 0 && info.si_pid == 0) return std::nullopt;
    if (failed != 0)
      end_ = ChildEnd{};
    else
      end_ = ChildEnd{info.si_code == CLD_EXITED ? ChildEnd::Kind::exited : ChildEnd::Kind::signalled, info.si_status};
  }
  return end_;
}

std::optional<ChildEnd> Child::wait_for(std::chrono::milliseconds limit) {
  const Clock::time_point give_up = Clock::now() + limit;
  while (!look(false)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    if (handle_.is_open()) {
      pollfd ended{handle_.get(), POLLIN, 0};
      ::poll(&ended, 1, static_cast<int>(left.count()));
    } else {
      std::this_thread::sleep_for(std::min(left, std::chrono::milliseconds(5)));
    }
  }
  return end_;
}

ChildEnd Child::kill() {
  if (const auto ended = look(false)) return *ended;
  if (handle_.is_open())
    ::syscall(SYS_pidfd_send_signal, handle_.get(), SIGKILL, nullptr, 0);
  else
    ::kill(pid_, SIGKILL);  // not waited for yet, so the number is still its own
  return *look(true);
}

}  // namespace kiln
