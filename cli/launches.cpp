#include "launches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "json.h"
#include "kiln/base/error.h"
#include "kiln/device/stream.h"
#include "kiln/reference/fill.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

using Value = nlohmann::ordered_json;

constexpr double worth_saying = 0.005;

// "load/store unit 74%, issue 43%", largest first; what is below half a per cent is left out.
std::string shares_text(const Value& shares) {
  std::vector<std::pair<std::string, double>> largest;
  for (const auto& [name, share] : shares.items()) {
    if (share.get<double>() >= worth_saying) largest.emplace_back(name, share.get<double>());
  }
  std::stable_sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  texts.reserve(largest.size());
  for (const auto& [name, share] : largest) texts.push_back(fmt::format("{} {:.0f}%", name, 100 * share));
  return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string extents_text(const Value& extents) {
  return fmt::format("{}x{}x{}", extents[0].get<uint32_t>(), extents[1].get<uint32_t>(), extents[2].get<uint32_t>());
}

std::string occupancy_text(const Value& launch) {
  const Value& occupancy = launch["occupancy"];
  std::string limit = occupancy["limit"].get<std::string>();
  std::replace(limit.begin(), limit.end(), '_', ' ');
  return fmt::format(
      "{} blocks, {} warps on an SM, limited by {} ({} registers of a thread, {} bytes shared by a block)",
      occupancy["blocks_per_multiprocessor"].get<int>(), occupancy["warps_per_multiprocessor"].get<int>(), limit,
      launch["registers_per_thread"].get<int>(), launch["shared_bytes"].get<uint64_t>());
}

std::string hits_text(const Value& hits) {
  if (hits.empty()) return "nothing is loaded";
  std::string text;
  if (hits.contains("l1"))
    text = fmt::format("L1 has {} of the sectors asked of it", percent_text(hits["l1"].get<double>()));
  if (hits.contains("l2")) {
    text +=
        fmt::format("{}L2 {} of those asked of it", text.empty() ? "" : ", ", percent_text(hits["l2"].get<double>()));
  }
  return text;
}

// How much of an SM's work was replayed; the rest is extrapolated.
std::string replayed_text(const Value& launch) {
  const Value& time = launch["modelled_time"];
  const double blocks = time["waves"].get<double>() * launch["occupancy"]["blocks_per_multiprocessor"].get<double>();
  std::string text = fmt::format(
      "{} of the {:.0f} blocks of an SM, {} instructions in {} cycles", time["replayed_blocks"].get<uint32_t>(),
      std::ceil(blocks), time["replayed_instructions"].get<uint64_t>(), time["replayed_cycles"].get<uint64_t>());
  const double share = time["replayed_share_of_paths"].get<double>();
  if (share < 1) text += fmt::format(", the first {} of each warp's", percent_text(share));
  return text;
}

std::string guesses_text(const Value& time) {
  std::vector<std::string> texts;
  const auto count = [&](const char* key, const char* what) {
    if (const auto number = time[key].get<uint64_t>(); number > 0) texts.push_back(fmt::format("{} {}", number, what));
  };
  const auto names = [&](const char* key, const char* what) {
    const auto opcodes = time[key].get<std::vector<std::string>>();
    if (!opcodes.empty()) texts.push_back(fmt::format("{}: {}", what, fmt::join(opcodes, " ")));
  };
  count("guessed_branches", "branches guessed, which depend on data");
  count("unknown_addresses", "accesses taken for spread evenly, whose addresses depend on data");
  names("unknown_instructions", "instructions whose results were taken for unknown");
  names("unclassified_instructions", "instructions timed as plain arithmetic");
  return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, "; "));
}

// The terms of the clock that sees PTX alone.
std::string terms_text(const Value& time) {
  std::vector<std::string> texts;
  for (const char* term : {"launch", "issue", "arithmetic", "l1", "l2", "dram", "latency"}) {
    texts.push_back(fmt::format("{} {}", term, time_text(time[term].get<double>())));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Nothing for a time that the clock knows.
std::optional<std::string> untimed_text(const Value& time) {
  if (!time.contains("not_timed")) return std::nullopt;
  return fmt::format("not timed: {}", time["not_timed"].get<std::string>());
}

std::string text_of(const Value& launch) {
  const Value& time = launch["modelled_time"];
  std::string text = fmt::format("{}, grid {}, block {}: ", launch["kernel"].get<std::string>(),
                                 extents_text(launch["grid"]), extents_text(launch["block"]));
  if (const auto reason = untimed_text(time)) return text + *reason + "\n";
  text +=
      fmt::format("{}, modelled by {}\n", time_text(time["seconds"].get<double>()), time["clock"].get<std::string>());
  const auto add = [&](const char* what, const std::string& line) { text += fmt::format("  {:<15}{}\n", what, line); };
  add("bound by", time["bound"].get<std::string>());
  if (time["clock"] == "ptx") {
    add("terms", terms_text(time));
    add("occupancy", occupancy_text(launch));
    if (time.contains("not_by_machine_code")) {
      add("clock", "not by machine code: " + time["not_by_machine_code"].get<std::string>());
    }
    return text;
  }
  add("busy", shares_text(time["units"]));
  add("warps wait for", shares_text(time["waits"]));
  add("occupancy", occupancy_text(launch));
  add("caches", hits_text(time["hits"]));
  add("replayed", replayed_text(launch));
  add("guessed", guesses_text(time));
  return text;
}

}  // namespace

checking::Checkable checkable(const Plan& plan) {
  using Operands = checking::Checkable::Operands;
  const auto addresses_of = [](Operands operands) {
    std::vector<Address> addresses;
    for (const cuda_abi::CUdeviceptr address : operands) addresses.emplace_back(reinterpret_cast<const void*>(address));
    return addresses;
  };
  checking::Checkable checkable(
      [&plan, addresses_of](cuda_abi::CUstream stream, Operands operands, RunValues values, int64_t n,
                            cuda_abi::CUdeviceptr workspace) {
        values.n = n;
        plan.run(stream, addresses_of(operands), reinterpret_cast<void*>(workspace), values);
      },
      plan.workspace_bytes());
  checkable.prepare = [&plan, addresses_of](cuda_abi::CUstream stream, Operands operands,
                                            cuda_abi::CUdeviceptr workspace) {
    plan.prepare_weights(stream, addresses_of(operands), reinterpret_cast<void*>(workspace));
  };
  checkable.run_prepared = [&plan, addresses_of](cuda_abi::CUstream stream, Operands operands, RunValues values,
                                                 int64_t n, cuda_abi::CUdeviceptr workspace) {
    values.n = n;
    const auto rest = workspace + static_cast<uint64_t>(plan.prepared_bytes());
    plan.run_prepared(stream, addresses_of(operands), reinterpret_cast<const void*>(workspace),
                      reinterpret_cast<void*>(rest), values);
  };
  return checkable;
}

void require_modelled_times(const device::DeviceInfo& device) {
  if (device.emulated) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--launches and --timeline tell modelled times, and {} is a real device", device.name),
              "--device emulator models one; `kiln run` measures a layer's time here");
}

checking::DeviceOperands filled_operands(const std::shared_ptr<const device::ContextHandle>& device,
                                         const Request& request) {
  const device::Stream stream(device);
  checking::DeviceOperands operands(device, request, checking::Placement::as_allocated);
  operands.upload(checking::contents_of(request, reference::Values::uniform, 1), true, stream.raw());
  stream.synchronize();
  return operands;
}

Json launches_of(tuner::DeviceTimer& timer, const checking::DeviceOperands& operands,
                 const checking::Checkable& variant, std::vector<LaunchTrace>* traces) {
  Value launches = Value::array();
  const uint64_t traced = traces == nullptr ? 0 : traced_instructions;
  for (const Value& launch : Value::parse(timer.launches_json(operands, variant, traced))) {
    if (traces != nullptr && launch.contains("trace")) {
      const Value& recorded = launch["trace"];
      traces->push_back({launch["kernel"].get<std::string>(), recorded["instructions"].get<uint64_t>(),
                         recorded["whole"].get<bool>(), recorded["events"].get<std::string>()});
    }
    Value& told = launches.emplace_back();
    for (const char* key :
         {"kernel", "grid", "block", "shared_bytes", "registers_per_thread", "occupancy", "modelled_time"}) {
      told[key] = launch[key];
    }
  }
  return Json(std::move(launches));
}

std::string trace_file(const std::vector<LaunchTrace>& traces, const std::string& request) {
  Value about = {{"request", request}, {"unit", "a microsecond of this trace is a cycle of the SM's clock, modelled"}};
  for (size_t i = 0; i < traces.size(); ++i) {
    const LaunchTrace& trace = traces[i];
    about[fmt::format("launch {}", i + 1)] =
        fmt::format("{}: {} instructions of one SM{}", trace.kernel, trace.instructions,
                    trace.is_whole ? "" : ", then the trace ends though the replay goes on");
  }
  std::string text = fmt::format("{{\"otherData\": {},\n\"traceEvents\": [\n", about.dump());
  for (const LaunchTrace& trace : traces) text += (&trace == traces.data() ? "" : ",\n") + trace.events;
  return text + "\n]}\n";
}

std::vector<std::string> not_by_machine_code(const Json& launches) {
  std::vector<std::string> reasons;
  for (const Value& launch : launches.value()) {
    const Value& time = launch["modelled_time"];
    if (time.contains("not_by_machine_code")) reasons.push_back(time["not_by_machine_code"].get<std::string>());
  }
  return reasons;
}

std::string bound_text(const Json& launches) {
  const Value* longest = nullptr;
  const auto seconds = [](const Value& launch) { return launch["modelled_time"]["seconds"].get<double>(); };
  double all = 0;
  for (const Value& launch : launches.value()) {
    if (auto reason = untimed_text(launch["modelled_time"])) return *std::move(reason);
    all += seconds(launch);
    if (longest == nullptr || seconds(launch) > seconds(*longest)) longest = &launch;
  }
  if (longest == nullptr) return "-";
  std::string bound = (*longest)["modelled_time"]["bound"].get<std::string>();
  if (launches.size() == 1) return bound;
  return fmt::format("{} ({} of {} launches' time: {})", bound, percent_text(seconds(*longest) / all), launches.size(),
                     (*longest)["kernel"].get<std::string>());
}

std::string launches_text(const Json& launches) {
  std::string text;
  for (const Value& launch : launches.value()) text += text_of(launch);
  return text;
}

}  // namespace kiln::cli
