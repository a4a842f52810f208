// What the messages say: values of the tuner as JSON. Both sides are of one build; the version catches a stray worker.
#pragma once

#include <nlohmann/json.hpp>

#include "kiln/device/device.h"
#include "kiln/device/resource_log.h"
#include "kiln/store/file_store.h"
#include "kiln/tuner/check.h"
#include "kiln/tuner/laboratory.h"

namespace kiln::tuner {

/// Stands in every command; a worker refuses another one.
inline constexpr int protocol_version = 1;

nlohmann::json to_json(const device::DeviceInfo& info);
device::DeviceInfo device_info_from(const nlohmann::json& value);

nlohmann::json to_json(const device::KernelResources& resources);
device::KernelResources resources_from(const nlohmann::json& value);

nlohmann::json to_json(const store::StoreOptions& options);
store::StoreOptions store_options_from(const nlohmann::json& value);

nlohmann::json to_json(const CheckOptions& options);
CheckOptions check_options_from(const nlohmann::json& value);

nlohmann::json to_json(const Failure& failure);
Failure failure_from(const nlohmann::json& value);

}  // namespace kiln::tuner
