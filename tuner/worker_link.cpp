#include "worker_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "kiln/base/error.h"
#include "kiln/base/variables.h"
#include "protocol.h"

namespace kiln::tuner {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void require(int error, const std::string& program, const char* call) {
  if (error == 0) return;
  throw Error(ErrorCode::io_error,
              fmt::format("the worker {} cannot be started: {}: {}", program, call, std::strerror(error)));
}

class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  pid_t spawn(const std::string& program, const std::vector<std::string>& arguments, int socket) {
    require(::posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO), program, "dup2");
    require(::posix_spawn_file_actions_adddup2(&actions_, socket, STDOUT_FILENO), program, "dup2");
    require(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP), program, "setflags");
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    require(::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, argv.data(), environment_of_children()),
            program, "posix_spawn");
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

WorkerLink::WorkerLink(const std::string& program, const std::vector<std::string>& arguments) {
  std::array<int, 2> pair{-1, -1};
  // A socket, not pipes: writing to a worker that died must not raise SIGPIPE in the application.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) require(errno, program, "socketpair");
  socket_ = FileDescriptor(pair[0]);
  const FileDescriptor theirs(pair[1]);
  pid_ = SpawnSettings().spawn(program, arguments, theirs.get());
}

WorkerLink::~WorkerLink() {
  if (pid_ >= 0) reap(true);
}

void WorkerLink::send(const Message& command, double limit_seconds) {
  command_ = command.fields;
  command_["serial"] = ++sent_;
  outbox_ = encode({command_, command.payload});
  busy_ = true;
  limit_ = limit_seconds;
  deadline_ = now() + limit_seconds;
}

short WorkerLink::events() const {
  return static_cast<short>(POLLIN | (outbox_.empty() ? 0 : POLLOUT));
}

double WorkerLink::seconds_left() const {
  return std::max(deadline_ - now(), 0.0);
}

std::optional<Answer> WorkerLink::service() {
  if (!flush()) return fail(Outcome::crashed, "died");
  bool ended = false;
  try {
    if (!receive(ended)) ended = true;
    if (std::optional<Message> message = reader_.next()) {
      std::optional<std::string> wrong = refuse_answer(command_, message->fields);
      if (!wrong && reader_.has_more()) wrong = "more than one answer";
      if (wrong) return fail(Outcome::crashed, fmt::format("sent garbage ({})", *wrong));
      busy_ = false;
      return Answer{std::move(*message), std::nullopt};
    }
  } catch (const Error& error) {
    return fail(Outcome::crashed, fmt::format("sent garbage ({})", error.message()));
  }
  if (ended) return fail(Outcome::crashed, "died");
  if (seconds_left() <= 0) return fail(Outcome::timed_out, fmt::format("exceeded the time limit of {} s", limit_));
  return std::nullopt;
}

// Sends what the socket takes; false if the other side is gone.
bool WorkerLink::flush() {
  while (!outbox_.empty()) {
    const ssize_t sent = ::send(socket_.get(), outbox_.data(), outbox_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    outbox_.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

// Reads what is there, or some of it: a worker that never stops talking must not keep the session here. False on an
// error. `ended`: there will be no more.
bool WorkerLink::receive(bool& ended) {
  constexpr int most_reads = 64;
  std::array<char, 65536> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): only what recv() wrote is read
  for (int reads = 0; reads < most_reads; ++reads) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) {
      ended = true;
      return true;
    }
    reader_.feed({bytes.data(), static_cast<size_t>(got)});
  }
  return true;
}

Answer WorkerLink::end() {
  return fail(Outcome::timed_out, "was ended before it had answered");
}

Answer WorkerLink::fail(Outcome outcome, std::string what) {
  const bool died = what == "died";
  // One that closed its end is about to end or has ended by itself; how it ended is worth knowing.
  const End end = reap(!died);
  if (end.was_taken) outcome = Outcome::out_of_memory;
  busy_ = false;
  return Answer{{}, Failure{outcome, fmt::format("the worker process {}{}", what, died ? ": " + end.text : "")}};
}

WorkerLink::End WorkerLink::reap(bool kill) {
  constexpr auto grace = std::chrono::seconds(2);  // for one that has closed its end and is ending
  const auto give_up = std::chrono::steady_clock::now() + grace;
  int status = 0;
  if (kill) ::kill(pid_, SIGKILL);
  while (true) {
    const pid_t ended = ::waitpid(pid_, &status, kill ? 0 : WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) break;
    if (ended != 0) continue;
    if (std::chrono::steady_clock::now() > give_up) {
      kill = true;
      ::kill(pid_, SIGKILL);
    } else {
      ::poll(nullptr, 0, 5);
    }
  }
  pid_ = -1;
  if (!WIFSIGNALED(status)) return {fmt::format("exit code {}", WEXITSTATUS(status))};
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL && !kill) return {"signal 9 (Killed), as a system does when its memory runs out", true};
  return {fmt::format("signal {} ({})", signal, ::strsignal(signal))};
}

}  // namespace kiln::tuner
