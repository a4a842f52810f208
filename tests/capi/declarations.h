// What the public headers call the arguments of the C functions, which messages name: read from their text.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kiln::capi {

/// The names of the arguments of every function that returns a kiln_status, by the function's name.
using Declarations = std::map<std::string, std::vector<std::string>>;

Declarations declared_functions();

}  // namespace kiln::capi
