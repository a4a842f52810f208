// Arguments and counts of launches as JSON, in compiled programs.
#pragma once

#include <nlohmann/json.hpp>

#include "kiln/generator/argument.h"

namespace kiln::execution {

nlohmann::json to_json(const Count& count);
nlohmann::json to_json(const Argument& argument);

/// The inverses. Throw nlohmann's exceptions for what is of another form; fault_of() finds values that are out of
/// range. `workspace_bytes`: of the program; arguments in the workspace that do not say how long they are (format 3)
/// reach to its end.
Count count_from_json(const nlohmann::json& value);
Argument argument_from_json(const nlohmann::json& value, int64_t workspace_bytes);

}  // namespace kiln::execution
