// The one reader of the process environment, which believes nothing in a program that runs with raised rights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// Whether the process has rights that its caller lacks: setuid, setgid or file capabilities (AT_SECURE, getauxval(3)).
/// Its environment, its arguments and the working directory are then the caller's, who may be anybody.
bool is_privileged();

/// The variable's value; null where it is not set, and always in a privileged process.
const char* variable(const char* name);

/// Names of the variables that begin with `prefix`, as they stand; none in a privileged process. No thread may change
/// the environment meanwhile, which holds for variable() too.
std::vector<std::string> variables_that_begin_with(std::string_view prefix);

/// Environment of a program that this process starts: this process's own, or an empty one where the process is
/// privileged. Ends in a null pointer, as execve(2) takes it.
char* const* environment_of_children();

}  // namespace kiln
