#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "kiln/base/error.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"
#include "kiln/tuner/worker.h"
#include "measurer.h"
#include "message.h"
#include "protocol.h"

namespace kiln::tuner {
namespace {

using nlohmann::json;

std::optional<std::string> optional_text(const json& fields, const char* name) {
  const auto found = fields.find(name);
  return found == fields.end() || found->is_null() ? std::nullopt : std::optional(found->get<std::string>());
}

json verdict_fields(const checking::Verdict& verdict) {
  json fields{{"verdict", verdict.text}};
  if (!verdict.passed) fields["failure"] = to_json(Failure{Outcome::wrong_result, verdict.text});
  return fields;
}

/// Carries out commands. One that fails for the variant's sake is answered with "failure"; one that leaves the process
/// useless with "fatal" besides; one that could not be understood or begun at all with "error".
class Worker {
 public:
  Message answer(const Message& command) {
    try {
      const json& fields = command.fields;
      if (fields.value("protocol", 0) != protocol_version) {
        throw Error(ErrorCode::unsupported, "the worker is of another version of Kiln than the session",
                    "set KILN_WORKER to the kiln program of the same build");
      }
      const auto action = fields.at("do").get<std::string>();
      if (action == "open") return open(fields);
      if (action == "nvrtc") return nvrtc(fields);
      return attempt(action, command);
    } catch (const Error& error) {
      return {{{"error", error.message()}, {"hint", error.hint()}, {"code", static_cast<int>(error.code())}}, {}};
    } catch (const std::exception& error) {
      return {{{"error", error.what()}, {"hint", ""}, {"code", static_cast<int>(ErrorCode::internal)}}, {}};
    }
  }

 private:
  Message open(const json& fields) {
    measurer_.emplace(optional_text(fields, "driver"), fields.at("device").get<int>(),
                      check_options_from(fields.at("check")));
    const device::Driver& driver = *measurer_->device().driver();
    return {{{"device", to_json(measurer_->device().info())},
             {"times_without_running", measurer_->times_without_running()},
             {"driver_version", device::cuda_version_text(driver.version())},
             {"driver", driver.description()}},
            {}};
  }

  Message nvrtc(const json& fields) {
    compiler_ = device::Nvrtc::open({.library = optional_text(fields, "nvrtc")});
    if (const auto kernels = fields.find("kernels"); kernels != fields.end()) {
      // Silent: what there is to say about the store, the application that uses the variants says.
      kernels_.emplace(store_options_from(*kernels), [](std::string_view) {});
    }
    target_ = execution::target_for(fields.at("cc_major").get<int>(), fields.at("cc_minor").get<int>(), *compiler_);
    return {{{"nvrtc_major", target_.nvrtc_major}, {"nvrtc_minor", target_.nvrtc_minor}}, {}};
  }

  Message attempt(const std::string& action, const Message& command) {
    try {
      if (action == "compile") return compile(command);
      return {measure(action, command), {}};
    } catch (...) {
      const Diagnosis diagnosis = diagnose_current_exception();
      json fields{{"failure", to_json(diagnosis.failure)}};
      if (diagnosis.device_lost) fields["fatal"] = true;
      return {std::move(fields), {}};
    }
  }

  Message compile(const Message& command) {
    if (!compiler_) throw Error(ErrorCode::internal, "the worker was given a program before its compiler");
    Variant variant = variant_from(command.payload);
    store::FileStore* const kernels = kernels_ ? &*kernels_ : nullptr;
    variant.program = execution::compile(*compiler_, variant.program.program, target_, kernels);
    double seconds = variant.program.seconds;
    if (variant.stand_in) {  // which an emulated device runs
      variant.stand_in =
          execution::compile(*compiler_, variant.stand_in->program, target_, kernels, execution::Products::ptx);
      seconds += variant.stand_in->seconds;
    }
    return {{{"seconds", seconds}, {"resources", to_json(variant.program.peak_resources())}}, serialise(variant)};
  }

  json measure(const std::string& action, const Message& command) {
    if (!measurer_) throw Error(ErrorCode::internal, "the worker was given work before its device");
    const json& fields = command.fields;
    if (action == "begin") {
      std::optional<Variant> trusted;
      if (!command.payload.empty()) trusted = variant_from(command.payload);
      Subject subject{Request::parse(fields.at("request").get<std::string>())};
      if (const auto smaller = optional_text(fields, "stand_in")) subject.stand_in = Request::parse(*smaller);
      return verdict_fields(measurer_->begin(subject, trusted ? &trusted->program : nullptr));
    }
    const auto id = fields.at("id").get<SpecimenId>();
    if (action == "check") return verdict_fields(measurer_->check(id));
    if (action == "sample") return {{"samples", measurer_->sample(id, fields.at("count").get<int>())}};
    if (action == "load") {
      measurer_->load(id, variant_from(command.payload));
    } else if (action == "discard") {
      measurer_->discard(id);
    } else {
      throw Error(ErrorCode::internal, fmt::format("a worker cannot '{}'", action));
    }
    return json::object();
  }

  std::shared_ptr<const device::Nvrtc> compiler_;
  Target target_;
  std::optional<store::FileStore> kernels_;
  std::optional<Measurer> measurer_;
};

/// Ends the process if the session goes away while a command is at work: nobody would read the answer, and a hung
/// compile or kernel would stay for ever. Not PR_SET_PDEATHSIG: that fires when the thread that started the worker
/// ends, though the session may go on in another one.
class Watcher {
 public:
  explicit Watcher(int in) : thread_([this, in](const std::stop_token& stop) { watch(in, stop); }) {}

  void set_busy(bool busy) { busy_.store(busy); }

 private:
  void watch(int in, const std::stop_token& stop) const {
    constexpr int interval_ms = 100;
    while (!stop.stop_requested()) {
      pollfd end{in, 0, 0};  // hang-up is always reported
      const bool gone = ::poll(&end, 1, interval_ms) > 0 && (end.revents & (POLLHUP | POLLERR)) != 0;
      if (!gone) continue;
      if (busy_.load()) ::_exit(0);
      std::this_thread::sleep_for(std::chrono::milliseconds(interval_ms));  // the main loop sees the end itself
    }
  }

  std::atomic<bool> busy_{false};
  std::jthread thread_;
};

// If the machine runs out of memory, the system should take this process and not the session: it can be replaced.
void volunteer_for_the_memory_killer() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;  // no such file system: then the system decides by itself
  constexpr std::string_view first = "1000";
  if (::write(file, first.data(), first.size()) < 0) fmt::print(stderr, "kiln worker: oom_score_adj stays as it is\n");
  ::close(file);
}

// The session says when work ends. A job system sends SIGTERM to every process of a job: a worker that died of it would
// look like a variant that crashes.
void leave_signals_to_the_session() {
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
}

bool write_all(int out, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(out, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// The next command; nothing at the end of the input. Throws Error(parse_error).
std::optional<Message> read_message(int in, MessageReader& reader) {
  std::array<char, 65536> bytes{};
  while (true) {
    if (std::optional<Message> message = reader.next()) return message;
    const ssize_t got = ::read(in, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    reader.feed({bytes.data(), static_cast<size_t>(got)});
  }
}

}  // namespace

int worker_main(int in, int out) {
  if (out == STDOUT_FILENO) {
    out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (out < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  }
  volunteer_for_the_memory_killer();
  leave_signals_to_the_session();
  Watcher watcher(in);
  Worker worker;
  MessageReader reader;
  try {
    while (const std::optional<Message> command = read_message(in, reader)) {
      watcher.set_busy(true);
      Message answer = worker.answer(*command);
      answer.fields["serial"] = command->fields.value("serial", json());  // so that no answer is taken for another one
      const bool sent = write_all(out, encode(answer));
      watcher.set_busy(false);
      if (!sent || answer.fields.contains("fatal")) return sent ? 0 : 1;
    }
  } catch (const Error& error) {
    fmt::print(stderr, "kiln worker: {}\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace kiln::tuner
