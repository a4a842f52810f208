#include "worker_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "kiln/base/error.h"
#include "kiln/base/variables.h"
#include "protocol.h"

namespace kiln::tuner {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

WorkerLink::WorkerLink(const std::string& program, const std::vector<std::string>& arguments) {
  std::array<int, 2> pair{-1, -1};
  // A socket, not pipes: writing to a worker that died must not raise SIGPIPE in the application.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    throw Error(ErrorCode::io_error,
                fmt::format("{} cannot be started: there is no socket to it: {}", program, std::strerror(errno)));
  }
  socket_ = FileDescriptor(pair[0]);
  const FileDescriptor theirs(pair[1]);
  child_.emplace(
      ChildProgram{.path = program, .arguments = arguments, .input = pair[1], .output = pair[1], .own_group = true});
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
  constexpr std::chrono::seconds grace(2);
  const std::optional<ChildEnd> by_itself = died ? child_->wait_for(grace) : std::nullopt;
  const ChildEnd end = by_itself ? *by_itself : child_->kill();
  std::string how = end.text();
  if (by_itself && end.kind == ChildEnd::Kind::signalled && end.number == SIGKILL) {
    outcome = Outcome::out_of_memory;
    how = "signal 9 (Killed), as a system does when its memory runs out";
  }
  busy_ = false;
  return Answer{{}, Failure{outcome, fmt::format("the worker process {}{}", what, died ? ": " + how : "")}};
}

}  // namespace kiln::tuner
