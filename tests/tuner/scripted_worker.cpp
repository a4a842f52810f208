// A worker whose programs do what their sources say: "crash", "hang", ... It plays both compiler and device, so that
// the pool is tested with real processes and without a GPU. Words in a source, each at compile or at check:
//   compile-crash, compile-hang, compile-garbage, compile-error
//   check-crash, check-hang, check-wrong, check-memory, check-lost, check-crash-once FILE (crashes if it can make FILE)
//   check-killed (as a system without memory does), check-exhaust (allocates until it cannot), check-flood (talks
//   without end), check-twice (two answers), check-deaf (closes its end and stays), check-says JSON (answers that)
//   sample-says JSON, compile-says JSON
//   slow (0.3 s to compile)
// Started with an argument, it has no device while a file of that name is there, or another one if the file holds a
// name (another board of the same name if that is "GPU-..."); check-gone, check-swapped and check-moved make that file
// and crash. If it holds "Crash" the device crashes when it is opened, if it holds "Crash once" only the first time;
// check-crash-open and check-crash-open-once make it so. If it holds "Compiler crash" the worker crashes when it is to
// load the compiler, if it holds "Compiler missing" it has none.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/execution/compile.h"
#include "message.h"
#include "protocol.h"
#include "variant.h"

namespace {

using namespace kiln;
using namespace kiln::tuner;

bool says(const std::string& source, const std::string& word) {
  return source.find(word) != std::string::npos;
}

void send(const Message& message) {
  const std::string bytes = encode(message);
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data() + sent, bytes.size() - sent);
    if (written <= 0) ::_exit(1);
    sent += static_cast<size_t>(written);
  }
}

[[noreturn]] void crash() {
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
  ::_exit(1);
}

// Takes memory as a runaway compile does, from a limit that spares the machine, and leaves no core file.
[[noreturn]] void exhaust() {
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const rlimit limit = {128UL << 20, 128UL << 20};
  ::setrlimit(RLIMIT_AS, &limit);
  std::vector<std::string> hoard;
  while (true) hoard.emplace_back(1 << 24, 'x');
}

[[noreturn]] void flood() {
  const std::string noise(1 << 16, 'n');
  while (::write(STDOUT_FILENO, noise.data(), noise.size()) > 0) {
  }
  ::_exit(0);
}

// Answer that a source wants to `step`, if it says so.
std::optional<Message> told(const std::string& source, const std::string& step) {
  const std::string word = step + "-says ";
  const size_t at = source.find(word);
  if (at == std::string::npos) return std::nullopt;
  return Message{nlohmann::json::parse(source.substr(at + word.size())), {}};
}

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

Message compile(const Message& command) {
  Variant compiled = variant_from(command.payload);
  const std::string& source = compiled.program.program.sources.front().code;
  if (says(source, "compile-crash")) crash();
  if (says(source, "compile-hang")) hang();
  if (says(source, "compile-garbage")) {
    if (::write(STDOUT_FILENO, "Segmentation fault\n", 19) < 0) ::_exit(1);
    hang();
  }
  if (says(source, "compile-error")) {
    return {{{"failure", to_json(Failure{Outcome::compile_failed, "no such type"})}}, {}};
  }
  if (const auto message = told(source, "compile")) return *message;
  if (says(source, "slow")) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  compiled.program.images = {{"ptx", std::string(200000, 'c'), {}}};  // more than a socket holds
  return {{{"seconds", 0.01}, {"resources", to_json(device::KernelResources{.name = "k", .arch = "", .registers = 7})}},
          serialise(compiled)};
}

Message check(const std::string& source) {
  if (says(source, "check-crash-once ")) {
    const std::string file = source.substr(source.find("check-crash-once ") + 17);
    const int made = ::open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (made >= 0) crash();
  } else if (says(source, "check-crash")) {
    crash();
  }
  if (says(source, "check-hang")) hang();
  if (says(source, "check-killed")) ::raise(SIGKILL);
  if (says(source, "check-exhaust")) exhaust();
  if (says(source, "check-flood")) flood();
  if (says(source, "check-twice")) return {{{"verdict", "one"}, {"again", true}}, {}};
  if (says(source, "check-deaf")) {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    hang();
  }
  if (const auto message = told(source, "check")) return *message;
  if (says(source, "check-wrong")) {
    return {{{"verdict", "wrong at (0)"}, {"failure", to_json(Failure{Outcome::wrong_result, "wrong at (0)"})}}, {}};
  }
  if (says(source, "check-memory")) {
    return {{{"failure", to_json(Failure{Outcome::out_of_memory, "8 GiB"})}}, {}};
  }
  if (says(source, "check-lost")) {
    return {{{"failure", to_json(Failure{Outcome::crashed, "illegal address"})}, {"fatal", true}}, {}};
  }
  return {{{"verdict", "fine in " + std::to_string(::getpid())}}, {}};
}

// Answer about the compiler; `name` tells what is wrong with it.
Message compiler(const std::string& name) {
  if (name == "Compiler crash") crash();
  if (name == "Compiler missing") {
    const int code = static_cast<int>(ErrorCode::missing_library);
    return {{{"error", "there is no libnvrtc"}, {"hint", "install it"}, {"code", code}}, {}};
  }
  return {{{"nvrtc_major", 13}, {"nvrtc_minor", 0}}, {}};
}

Message answer(const Message& command, std::map<SpecimenId, std::string>& loaded, const char* gone) {
  const auto action = command.fields.at("do").get<std::string>();
  std::string name = "Scripted";
  if (gone != nullptr) std::getline(std::ifstream(gone), name);
  if (action == "open" && gone != nullptr && ::access(gone, F_OK) == 0 && name.empty()) {
    const int code = static_cast<int>(ErrorCode::driver_error);
    return {{{"error", "cuInit: no device"}, {"hint", "look at the cables"}, {"code", code}}, {}};
  }
  if (action == "open" && name.starts_with("Crash")) {
    if (name == "Crash once") ::unlink(gone);
    crash();
  }
  if (action == "open") {
    device::DeviceInfo info;
    const bool is_moved = name.starts_with("GPU-");
    info.name = is_moved ? "Scripted" : name;
    info.uuid = is_moved ? name : "GPU-0";
    info.cc_major = 9;
    info.emulated = true;
    return {{{"device", to_json(info)},
             {"times_without_running", false},
             {"driver_version", "13.0"},
             {"driver", "scripted"}},
            {}};
  }
  if (action == "nvrtc") return compiler(name);
  if (action == "compile") return compile(command);
  if (action == "begin") {
    loaded.clear();
    return {{{"verdict", "begun"}}, {}};
  }
  const auto id = command.fields.at("id").get<SpecimenId>();
  if (action == "load") {
    if (says(variant_from(command.payload).program.program.sources.front().code, "load-crash")) crash();
    loaded[id] = variant_from(command.payload).program.program.sources.front().code;
    return {};
  }
  if (action == "discard") {
    loaded.erase(id);
    return {};
  }
  if (!loaded.contains(id)) return {{{"error", "not loaded"}, {"hint", ""}, {"code", 0}}, {}};
  if (action == "check" && gone != nullptr && says(loaded.at(id), "check-gone")) {
    ::close(::open(gone, O_CREAT | O_WRONLY, 0600));
    crash();
  }
  if (action == "check" && gone != nullptr && says(loaded.at(id), "check-crash-open")) {
    std::ofstream(gone) << (says(loaded.at(id), "check-crash-open-once") ? "Crash once" : "Crash");
    crash();
  }
  for (const auto& [word, other] : {std::pair("check-swapped", "Another"), std::pair("check-moved", "GPU-1")}) {
    if (action != "check" || gone == nullptr || !says(loaded.at(id), word)) continue;
    std::ofstream(gone) << other;
    crash();
  }
  if (action == "check") return check(loaded.at(id));
  if (const auto message = told(loaded.at(id), "sample")) return *message;
  return {{{"samples", std::vector<double>(command.fields.at("count").get<size_t>(), 0.25)}}, {}};
}

}  // namespace

int main(int argc, char** argv) {
  std::map<SpecimenId, std::string> loaded;
  MessageReader reader;
  char bytes[4096];
  while (true) {
    while (const auto command = reader.next()) {
      Message reply = answer(*command, loaded, argc > 1 ? argv[1] : nullptr);
      reply.fields["serial"] = command->fields.at("serial");
      send(reply);
      if (reply.fields.contains("again")) send(reply);
      if (reply.fields.contains("fatal")) return 0;
    }
    const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0) return 0;
    reader.feed({bytes, static_cast<size_t>(got)});
  }
}
