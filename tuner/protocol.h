// Contents of the messages: values of the tuner as JSON. Both sides are of one build; the version catches a stray
// worker.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "kiln/checking/check.h"
#include "kiln/device/device.h"
#include "kiln/device/resource_log.h"
#include "kiln/store/file_store.h"
#include "kiln/tuner/laboratory.h"

namespace kiln::tuner {

/// Stands in every command; a worker refuses another one.
inline constexpr int protocol_version = 3;

nlohmann::json to_json(const device::DeviceInfo& info);
device::DeviceInfo device_info_from(const nlohmann::json& value);

nlohmann::json to_json(const device::KernelResources& resources);
device::KernelResources resources_from(const nlohmann::json& value);

nlohmann::json to_json(const store::StoreOptions& options);
store::StoreOptions store_options_from(const nlohmann::json& value);

nlohmann::json to_json(const checking::CheckOptions& options);
checking::CheckOptions check_options_from(const nlohmann::json& value);

nlohmann::json to_json(const Failure& failure);
Failure failure_from(const nlohmann::json& value);

/// Why `answer` cannot be the answer to `command`: it repeats another serial number, a field that it needs is missing
/// or of another type, a time is no time, there are more or fewer samples than were asked for; nothing if it can.
/// Reports of failures and errors need only their own fields.
std::optional<std::string> refuse_answer(const nlohmann::json& command, const nlohmann::json& answer);

}  // namespace kiln::tuner
