#include "protocol.h"

#include <cmath>

#include "kiln/base/error.h"

namespace kiln::tuner {
namespace {

using nlohmann::json;

// Calls visit(name, member) for every member: one list serves both directions.
template <class Info, class Visit>
void each_member(Info& info, Visit visit) {
  visit("name", info.name);
  visit("cc_major", info.cc_major);
  visit("cc_minor", info.cc_minor);
  visit("sms", info.sms);
  visit("memory_bytes", info.memory_bytes);
  visit("memory_bus_bits", info.memory_bus_bits);
  visit("memory_clock_khz", info.memory_clock_khz);
  visit("clock_khz", info.clock_khz);
  visit("l2_bytes", info.l2_bytes);
  visit("shared_per_block", info.shared_per_block);
  visit("shared_per_block_optin", info.shared_per_block_optin);
  visit("shared_per_sm", info.shared_per_sm);
  visit("shared_reserved_per_block", info.shared_reserved_per_block);
  visit("registers_per_block", info.registers_per_block);
  visit("registers_per_sm", info.registers_per_sm);
  visit("threads_per_block", info.threads_per_block);
  visit("threads_per_sm", info.threads_per_sm);
  visit("blocks_per_sm", info.blocks_per_sm);
  visit("warp_size", info.warp_size);
  visit("mig_profile", info.mig_profile);
  visit("uuid", info.uuid);
  visit("emulated", info.emulated);
}

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::parse_error, what);
}

void require_seconds(const json& value) {
  const auto seconds = value.get<double>();
  require(std::isfinite(seconds) && seconds >= 0, "a time that is none");
}

void require_error(const json& answer) {
  answer.at("error").get<std::string>();
  if (answer.contains("hint")) answer.at("hint").get<std::string>();
  const int code = answer.value("code", 0);
  require(code >= 0 && code <= static_cast<int>(last_error_code), "an error of no known kind");
}

// Throws Error or json::exception for an answer that does not fit.
void require_answer(const json& command, const json& answer) {
  require(answer.value("serial", json()) == command.value("serial", json()), "the answer to another command");
  if (answer.contains("verdict")) answer.at("verdict").get<std::string>();
  if (answer.contains("error")) return require_error(answer);
  if (answer.contains("failure")) {
    const Failure failure = failure_from(answer.at("failure"));
    require(!has_time(failure.outcome), "a failure that is none");
    return;
  }
  const json action = command.value("do", json());
  if (action == "open") {
    device_info_from(answer.at("device"));
    answer.at("times_without_running").get<bool>();
    answer.at("driver_version").get<std::string>();
    answer.at("driver").get<std::string>();
  } else if (action == "nvrtc") {
    require(answer.at("nvrtc_major").get<int>() > 0, "an NVRTC without a version");
    answer.at("nvrtc_minor").get<int>();
  } else if (action == "compile") {
    require_seconds(answer.at("seconds"));
    resources_from(answer.at("resources"));
    require(answer.value("payload", 0) > 0, "a compile without a result");
  } else if (action == "begin" || action == "check") {
    answer.at("verdict").get<std::string>();
  } else if (action == "sample") {
    const json& samples = answer.at("samples");
    require(samples.is_array() && samples.size() == command.at("count").get<size_t>(), "another number of samples");
    for (const json& sample : samples) require_seconds(sample);
  }
}

template <class Resources, class Visit>
void each_resource(Resources& resources, Visit visit) {
  visit("name", resources.name);
  visit("arch", resources.arch);
  visit("registers", resources.registers);
  visit("spill_stores", resources.spill_stores);
  visit("spill_loads", resources.spill_loads);
  visit("stack", resources.stack);
  visit("static_shared", resources.static_shared);
  visit("constant", resources.constant);
  visit("barriers", resources.barriers);
}

}  // namespace

json to_json(const device::DeviceInfo& info) {
  json value = json::object();
  each_member(info, [&](const char* name, const auto& member) { value[name] = member; });
  return value;
}

device::DeviceInfo device_info_from(const json& value) {
  device::DeviceInfo info;
  each_member(info, [&](const char* name, auto& member) { value.at(name).get_to(member); });
  return info;
}

json to_json(const device::KernelResources& resources) {
  json value = json::object();
  each_resource(resources, [&](const char* name, const auto& member) { value[name] = member; });
  return value;
}

device::KernelResources resources_from(const json& value) {
  device::KernelResources resources;
  each_resource(resources, [&](const char* name, auto& member) { value.at(name).get_to(member); });
  return resources;
}

json to_json(const store::StoreOptions& options) {
  return {{"folder", options.folder}, {"limit", options.limit_bytes}, {"shared", options.shared}};
}

store::StoreOptions store_options_from(const json& value) {
  store::StoreOptions options;
  value.at("folder").get_to(options.folder);
  value.at("limit").get_to(options.limit_bytes);
  value.at("shared").get_to(options.shared);
  return options;
}

json to_json(const checking::CheckOptions& options) {
  json fills = json::array();
  for (const reference::Values values : options.fills) fills.push_back(static_cast<int>(values));
  return {{"fills", fills},
          {"seed", options.seed},
          {"samples", options.samples},
          {"full_flops", options.full_flops},
          {"full_elements", options.full_elements}};
}

checking::CheckOptions check_options_from(const json& value) {
  checking::CheckOptions options;
  options.fills.clear();
  for (const json& values : value.at("fills"))
    options.fills.push_back(static_cast<reference::Values>(values.get<int>()));
  value.at("seed").get_to(options.seed);
  value.at("samples").get_to(options.samples);
  value.at("full_flops").get_to(options.full_flops);
  value.at("full_elements").get_to(options.full_elements);
  return options;
}

json to_json(const Failure& failure) {
  return {{"outcome", std::string(to_string(failure.outcome))}, {"error", failure.error}};
}

Failure failure_from(const json& value) {
  Failure failure;
  failure.outcome = parse_outcome(value.at("outcome").get<std::string>()).value_or(Outcome::crashed);
  value.at("error").get_to(failure.error);
  return failure;
}

std::optional<std::string> refuse_answer(const json& command, const json& answer) {
  try {
    require_answer(command, answer);
    return std::nullopt;
  } catch (const Error& error) {
    return error.message();
  } catch (const json::exception& error) {
    return error.what();
  }
}

}  // namespace kiln::tuner
