// Names that the public headers give to the arguments of the C functions, which messages use: read from their text.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kiln::capi {

/// The names of the arguments of every function that returns a kiln_status, by the function's name.
using Declarations = std::map<std::string, std::vector<std::string>>;

Declarations declared_functions();

}  // namespace kiln::capi
