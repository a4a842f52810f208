#include "worker_pool.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "kiln/base/error.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"
#include "protocol.h"
#include "variant.h"

namespace kiln::tuner {
namespace {

using nlohmann::json;

// Between two questions whether to go on waiting, seconds.
constexpr double watch_interval = 0.5;

// Errors of the set-up are the session's: nothing can be tuned.
void require_no_error(const Message& answer) {
  const json& fields = answer.fields;
  if (!fields.contains("error")) return;
  throw Error(static_cast<ErrorCode>(fields.value("code", static_cast<int>(ErrorCode::internal))),
              fields.at("error").get<std::string>(), fields.value("hint", ""));
}

// The failure of a command, whether the worker reported it or failed itself.
std::optional<Failure> failure_of(const Answer& answer) {
  if (answer.failure) return answer.failure;
  require_no_error(answer.message);
  const auto found = answer.message.fields.find("failure");
  if (found == answer.message.fields.end()) return std::nullopt;
  return failure_from(*found);
}

// A worker that does not start well is a fault of the machine or its set-up: `code` says of which part.
void require_success(const Answer& answer, ErrorCode code, const char* what) {
  if (const std::optional<Failure> failure = failure_of(answer)) {
    throw Error(code, fmt::format("{}: {}", what, failure->error),
                "KILN_WORKER must name the kiln program of this build");
  }
}

}  // namespace

std::unique_ptr<Laboratory> make_worker_pool(WorkerPoolOptions options) {
  return std::make_unique<WorkerPool>(std::move(options));
}

WorkerPool::WorkerPool(WorkerPoolOptions options) : options_(std::move(options)) {
  const size_t hardware = std::max(1U, std::thread::hardware_concurrency());
  lanes_.resize(options_.compile_lanes == 0 ? hardware : options_.compile_lanes);

  measurer_ = start_worker();
  const Answer opened = call(*measurer_, open_command(), options_.open_limit);
  require_success(opened, ErrorCode::driver_error, "the device cannot be opened");
  const json& fields = opened.message.fields;
  apparatus_.device = device_info_from(fields.at("device"));
  apparatus_.figures = execution::figures_of(apparatus_.device);
  apparatus_.driver_version = fields.at("driver_version").get<std::string>();
  apparatus_.driver_description = fields.at("driver").get<std::string>();
  apparatus_.deterministic_time = apparatus_.device.emulated;
  apparatus_.times_without_running = fields.at("times_without_running").get<bool>();
  apparatus_.target.arch = Arch::of(apparatus_.device.cc_major, apparatus_.device.cc_minor);
  open_compiler();
}

void WorkerPool::open_compiler() {
  Lane& lane = lanes_.front();
  lane.link = start_worker();
  Message message = command("nvrtc");
  const Answer answer = call(*lane.link, message, options_.open_limit);
  require_success(answer, ErrorCode::missing_library, "the compiler cannot be loaded");
  lane.has_compiler = true;
  Target& target = apparatus_.target;
  answer.message.fields.at("nvrtc_major").get_to(target.nvrtc_major);
  answer.message.fields.at("nvrtc_minor").get_to(target.nvrtc_minor);
  apparatus_.nvrtc_version = fmt::format("{}.{}", target.nvrtc_major, target.nvrtc_minor);
}

Message WorkerPool::command(const char* action) const {
  Message message;
  message.fields = {{"protocol", protocol_version}, {"do", action}};
  if (std::string_view(action) == "nvrtc") {
    if (options_.nvrtc) message.fields["nvrtc"] = *options_.nvrtc;
    if (options_.kernels) message.fields["kernels"] = to_json(*options_.kernels);
    message.fields["cc_major"] = apparatus_.device.cc_major;
    message.fields["cc_minor"] = apparatus_.device.cc_minor;
  }
  return message;
}

Message WorkerPool::open_command() const {
  Message message = command("open");
  if (options_.driver) message.fields["driver"] = *options_.driver;
  message.fields["device"] = options_.device;
  message.fields["check"] = to_json(options_.check);
  return message;
}

std::unique_ptr<WorkerLink> WorkerPool::start_worker() const {
  return std::make_unique<WorkerLink>(options_.worker, options_.arguments);
}

std::vector<pid_t> WorkerPool::processes() const {
  std::vector<pid_t> pids{measurer_ ? measurer_->pid() : -1};
  for (const Lane& lane : lanes_) pids.push_back(lane.link ? lane.link->pid() : -1);
  return pids;
}

// ---- the event loop ----

// Waits up to `wait_seconds` for any worker and takes what they answer: compilers' answers are dealt with here, that of
// `awaited` goes to `answer`. So compilers are never left waiting while the device measures.
void WorkerPool::pump(double wait_seconds, WorkerLink* awaited, std::optional<Answer>* answer) {
  std::vector<WorkerLink*> busy;
  if (awaited != nullptr) busy.push_back(awaited);
  for (Lane& lane : lanes_) {
    if (!lane.at_work) employ(lane);
    if (lane.link && lane.link.get() != awaited && lane.link->is_busy()) busy.push_back(lane.link.get());
  }
  if (busy.empty()) return;
  std::vector<pollfd> descriptors;
  for (const WorkerLink* link : busy) {
    descriptors.push_back({link->descriptor(), link->events(), 0});
    wait_seconds = std::min(wait_seconds, link->seconds_left());
  }
  constexpr double longest_wait = 60;
  ::poll(descriptors.data(), descriptors.size(),
         static_cast<int>(std::ceil(1e3 * std::min(wait_seconds, longest_wait))));

  if (awaited != nullptr) *answer = awaited->service();
  for (Lane& lane : lanes_) {
    if (!lane.link || lane.link.get() == awaited || !lane.link->is_busy()) continue;
    if (std::optional<Answer> given = lane.link->service()) take_answer(lane, std::move(*given));
  }
}

Answer WorkerPool::call(WorkerLink& link, const Message& message, double limit_seconds) {
  link.send(message, limit_seconds);
  std::optional<Answer> answer;
  while (true) {
    pump(std::min(link.seconds_left(), watch_interval), &link, &answer);
    if (answer) return std::move(*answer);
    if (!may_go_on()) return link.end();
  }
}

// ---- compiling ----

std::optional<Request> WorkerPool::stand_in(const Request& request) const {
  if (!apparatus_.times_without_running) return std::nullopt;
  return checking::smaller_request(request, options_.check);
}

void WorkerPool::submit(SpecimenId id, const Programs& programs) {
  const auto uncompiled = [](const Program& one) {
    return execution::CompiledProgram{.program = one, .images = {}, .log = {}, .seconds = 0};
  };
  Variant variant{uncompiled(programs.program), std::nullopt};
  if (programs.stand_in) variant.stand_in = uncompiled(*programs.stand_in);
  variants_[id] = {serialise(variant), {}};
  queue_.push_back(id);
  pump(0, nullptr, nullptr);
}

std::optional<CompileReport> WorkerPool::collect(double wait_seconds) {
  if (finished_.empty()) pump(wait_seconds, nullptr, nullptr);
  if (finished_.empty()) return std::nullopt;
  CompileReport report = std::move(finished_.front());
  finished_.pop_front();
  return report;
}

// Gives an idle lane the next program, after its compiler is loaded.
void WorkerPool::employ(Lane& lane) {
  if (queue_.empty() || (lane.link && lane.link->is_busy())) return;
  if (!lane.link) {
    lane.link = start_worker();
    lane.has_compiler = false;
  }
  if (!lane.has_compiler) {
    lane.link->send(command("nvrtc"), options_.open_limit);
    return;
  }
  lane.at_work = queue_.front();
  queue_.pop_front();
  Message message = command("compile");
  message.payload = variants_.at(*lane.at_work).source;
  lane.link->send(message, options_.compile_limit);
}

void WorkerPool::take_answer(Lane& lane, Answer answer) {
  const std::optional<SpecimenId> id = std::exchange(lane.at_work, std::nullopt);
  if (answer.failure || answer.message.fields.contains("fatal")) lane.link.reset();
  if (!id) {
    require_success(answer, ErrorCode::missing_library, "the compiler cannot be loaded");
    lane.has_compiler = true;
  } else if (variants_.contains(*id)) {
    report(*id, std::move(answer));
  }
  if (lane.link || !queue_.empty()) employ(lane);
}

void WorkerPool::report(SpecimenId id, Answer answer) {
  CompileReport done;
  done.id = id;
  done.failure = failure_of(answer);
  if (!done.failure) {
    done.seconds = answer.message.fields.at("seconds").get<double>();
    done.resources = resources_from(answer.message.fields.at("resources"));
    variants_[id] = {{}, std::move(answer.message.payload)};
  }
  finished_.push_back(std::move(done));
}

// ---- measuring ----

bool WorkerPool::needs_trusted(const Request& request) const {
  return checking::needs_trusted(request, options_.check);
}

// A command to the measuring process. If that fails or is of no more use afterwards, it is gone.
Answer WorkerPool::measure(const Message& message, double limit_seconds) {
  Answer answer = call(*measurer_, message, limit_seconds);
  if (answer.failure || answer.message.fields.contains("fatal")) {
    measurer_.reset();
    begun_ = false;
    loaded_.clear();
  }
  return answer;
}

// The device was there before: if it does not open again, it is lost, and no variant is to blame.
std::optional<Failure> WorkerPool::open_measurer() {
  if (measurer_) return std::nullopt;
  Answer answer;
  const auto open = [&] {
    measurer_ = start_worker();
    answer = measure(open_command(), options_.open_limit);
    return failure_of(answer);
  };
  constexpr const char* lost = "the device cannot be opened any more";
  try {
    std::optional<Failure> failure = open();
    if (deserves_retry(failure) && may_go_on()) failure = open();
    if (deserves_retry(failure) && may_go_on()) {
      throw Error(ErrorCode::driver_error, fmt::format("{}: {}", lost, failure->error));
    }
    if (failure) return failure;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;  // there is no device of this number now
    throw Error(ErrorCode::driver_error, fmt::format("{}: {}", lost, error.message()), error.hint());
  }
  const device::DeviceInfo info = device_info_from(answer.message.fields.at("device"));
  // Drivers number devices anew where one is lost: another board of the kind may be at work for another session.
  if (info.id() != apparatus_.device.id() || info.uuid != apparatus_.device.uuid) {
    throw Error(ErrorCode::driver_error,
                fmt::format("the device changed from {} ({}) to {} ({}) during the session", apparatus_.device.id(),
                            apparatus_.device.uuid, info.id(), info.uuid));
  }
  return std::nullopt;
}

// Makes the measuring process ready for the current request, if it is not.
std::optional<Failure> WorkerPool::begin_here() {
  if (std::optional<Failure> failure = open_measurer()) return failure;
  if (begun_) return std::nullopt;
  if (!subject_) throw Error(ErrorCode::internal, "a variant was to be measured before its request");
  Message message = command("begin");
  message.fields["request"] = subject_->request.key();
  if (subject_->stand_in) message.fields["stand_in"] = subject_->stand_in->key();
  if (trusted_) message.payload = variants_.at(*trusted_).compiled;
  loaded_.clear();
  Answer answer = measure(message, options_.begin_limit);
  if (std::optional<Failure> failure = failure_of(answer)) return failure;
  begun_ = true;
  begun_answer_ = std::move(answer.message);
  return std::nullopt;
}

std::optional<Failure> WorkerPool::load_here(SpecimenId id) {
  if (loaded_.contains(id)) return std::nullopt;
  Message message = command("load");
  message.fields["id"] = id;
  message.payload = variants_.at(id).compiled;
  std::optional<Failure> failure = failure_of(measure(message, options_.run_limit));
  if (!failure) loaded_.insert(id);
  return failure;
}

std::optional<Failure> WorkerPool::prepare_for(SpecimenId id) {
  if (std::optional<Failure> failure = begin_here()) return failure;
  return load_here(id);
}

CheckReport WorkerPool::begin(const Subject& subject, std::optional<SpecimenId> trusted) {
  subject_ = subject;
  trusted_ = trusted;
  begun_ = false;
  CheckReport report;
  report.failure = begin_here();
  if (report.failure) return report;
  report.verdict = begun_answer_.fields.at("verdict").get<std::string>();
  return report;
}

CheckReport WorkerPool::check(SpecimenId id) {
  CheckReport report;
  report.failure = prepare_for(id);
  if (report.failure) return report;
  Message message = command("check");
  message.fields["id"] = id;
  const Answer answer = measure(message, options_.run_limit);
  report.failure = failure_of(answer);
  report.verdict = answer.message.fields.value("verdict", "");
  return report;
}

SampleReport WorkerPool::sample(SpecimenId id, int count) {
  SampleReport report;
  report.failure = prepare_for(id);
  if (report.failure) return report;
  Message message = command("sample");
  message.fields["id"] = id;
  message.fields["count"] = count;
  const Answer answer = measure(message, options_.run_limit);
  report.failure = failure_of(answer);
  if (!report.failure) answer.message.fields.at("samples").get_to(report.seconds);
  return report;
}

void WorkerPool::discard(SpecimenId id) {
  variants_.erase(id);
  std::erase(queue_, id);
  std::erase_if(finished_, [&](const CompileReport& report) { return report.id == id; });
  if (!measurer_ || loaded_.erase(id) == 0) return;
  Message message = command("discard");
  message.fields["id"] = id;
  measure(message, options_.run_limit);
}

}  // namespace kiln::tuner
