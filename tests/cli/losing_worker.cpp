// A real worker that can lose its device. Its variables:
//   LOSE_DEVICE  the ordinal of the device; without it all are lost
//   LOSE_AFTER   so many checks of variants; the next one ends the process. Without it the device is there
//   LOSE_FILE    made then; while it is there the device cannot be opened
//   LOSE_CODE    the ErrorCode with which it cannot; without it, that there is no such device
//   LOSE_SLOWLY  milliseconds that each check of the other devices takes longer
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "kiln/base/error.h"
#include "kiln/tuner/worker.h"
#include "message.h"

namespace {

using namespace kiln;
using namespace kiln::tuner;

void send(int descriptor, const Message& message) {
  const std::string bytes = encode(message);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t written = ::write(descriptor, bytes.data() + sent, bytes.size() - sent);
    if (written <= 0) ::_exit(1);
    sent += static_cast<size_t>(written);
  }
}

std::optional<Message> receive(int descriptor, MessageReader& reader) {
  std::array<char, 65536> bytes{};
  while (true) {
    if (std::optional<Message> message = reader.next()) return message;
    const ssize_t got = ::read(descriptor, bytes.data(), bytes.size());
    if (got <= 0) return std::nullopt;
    reader.feed({bytes.data(), static_cast<size_t>(got)});
  }
}

int number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

[[noreturn]] void lose(const char* file) {
  ::close(::open(file, O_CREAT | O_WRONLY, 0600));
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
  ::_exit(1);
}

}  // namespace

int main() {
  const int device = number("LOSE_DEVICE"), most_checks = number("LOSE_AFTER"), code = number("LOSE_CODE");
  const std::chrono::milliseconds slowly(std::max(0, number("LOSE_SLOWLY")));
  const char* const file = std::getenv("LOSE_FILE");
  std::array<int, 2> pair{-1, -1};
  const int out = ::dup(STDOUT_FILENO);
  if (file == nullptr || out < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) return 1;
  std::thread([&] { ::_exit(worker_main(pair[1], pair[1])); }).detach();

  MessageReader commands, answers;
  bool is_fragile = false;
  int checks = 0;
  while (const std::optional<Message> command = receive(STDIN_FILENO, commands)) {
    const auto action = command->fields.at("do").get<std::string>();
    if (action == "open") is_fragile = device < 0 || command->fields.at("device").get<int>() == device;
    if (action == "open" && is_fragile && ::access(file, F_OK) == 0) {
      send(out, {{{"error", "there is no device " + std::to_string(command->fields.at("device").get<int>())},
                  {"hint", "look at the cables"},
                  {"code", code < 0 ? static_cast<int>(ErrorCode::invalid_argument) : code},
                  {"serial", command->fields.at("serial")}},
                 {}});
      continue;
    }
    if (action == "check" && !is_fragile) std::this_thread::sleep_for(slowly);
    if (action == "check" && is_fragile && most_checks >= 0 && checks++ == most_checks) lose(file);
    send(pair[0], *command);
    const std::optional<Message> answer = receive(pair[0], answers);
    if (!answer) return 1;
    send(out, *answer);
  }
  return 0;
}
