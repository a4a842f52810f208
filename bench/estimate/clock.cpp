#include "clock.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/checking/device_operands.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/executable.h"

namespace kiln::bench {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

TimesFile::TimesFile(std::string path, std::string device) : path_(std::move(path)), device_(std::move(device)) {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("seconds")) {
      throw Error(ErrorCode::parse_error, fmt::format("{} has a line that is no time: {}", path_, line));
    }
    if (json["device"] != device_) continue;
    const Json& seconds = json["seconds"];
    times_[json["request"]][json["variant"]] = seconds.is_null() ? no_time : seconds.get<double>();
  }
}

void TimesFile::add(const std::string& request, const std::string& variant, double seconds,
                    const std::string& launches) {
  times_[request][variant] = seconds;
  Json json = {{"device", device_}, {"request", request}, {"variant", variant}, {"seconds", nullptr}};
  if (seconds != no_time) json["seconds"] = seconds;
  json["launches"] = Json::parse(launches);
  std::ofstream file(path_, std::ios::app);
  file << json.dump() + "\n" << std::flush;
  if (!file) throw Error(ErrorCode::io_error, path_ + " cannot be written");
}

VariantClock::VariantClock(std::shared_ptr<const device::ContextHandle> context,
                           std::shared_ptr<const device::Nvrtc> nvrtc, const Catalogue& catalogue, const Target& target,
                           const std::optional<store::StoreOptions>& kernels)
    : context_(std::move(context)), nvrtc_(std::move(nvrtc)), catalogue_(catalogue), target_(target), timer_(context_) {
  if (!device::TimeOnly(context_).holds()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} tells no times of kernels that do not run", context_->device().info().name),
                "KILN_DRIVER=emulator KILN_EMULATOR_CLOCK=machine, with nvdisasm installed");
  }
  if (kernels) kernels_.emplace(*kernels);
}

void VariantClock::time(const Request& request, const Candidates& candidates, const tuner::SearchOptions& options,
                        const std::string& names, TimesFile& file) {
  const std::regex pattern(names);
  std::vector<Candidate> ranked;
  for (const Candidate& candidate : candidates.ranked) {
    if (std::regex_match(candidate.choice.algorithm, pattern)) ranked.push_back(candidate);
  }
  if (ranked.empty()) return;
  const auto search = tuner::make_search(options, ranked, ranked.front().choice);
  while (const auto choice = search->next()) {
    const bool is_known = file.of(request.key()).contains(name_of(*choice));
    const bool is_default = *choice == candidates.best_guess()->choice;
    search->observe(trial_of(*choice, time(request, *choice, is_default, file)), !is_known);
  }
}

double VariantClock::time(const Request& request, const Choice& choice, bool may_spill, TimesFile& file) {
  const Times& known = file.of(request.key());
  if (const auto found = known.find(name_of(choice)); found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const Operand& operand : request.operands) names.push_back(operand.name);
  const execution::CompiledProgram compiled =
      execution::compile(*nvrtc_, catalogue_.program(request, target_, choice), target_,
                         kernels_ ? &*kernels_ : nullptr, execution::Products::cubin);
  const device::KernelResources peak = compiled.peak_resources();
  const auto keep = [&](double seconds, const std::string& launches) {
    file.add(request.key(), name_of(choice), seconds, launches);
    return seconds;
  };
  if (peak.spill_stores + peak.spill_loads > 0 && !may_spill) return keep(no_time, "[]");
  const execution::Executable variant(context_, compiled, names);
  const checking::DeviceOperands operands(context_, request, checking::Placement::as_allocated);
  const auto launches = device::timed_only(context_, [&] { return timer_.launches_json(operands, variant); });
  if (!launches) return keep(no_time, "[]");
  for (const Json& launch : Json::parse(*launches)) {
    const Json& time = launch["modelled_time"];
    if (time.contains("not_timed") || time.contains("not_by_machine_code")) return keep(no_time, *launches);
  }
  const auto samples = device::timed_only(context_, [&] { return timer_.time(operands, variant, 1, tuner::L2::cold); });
  return keep(samples->front(), *launches);
}

}  // namespace kiln::bench
