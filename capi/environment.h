// Settings that a C program gives in place of its environment.
#pragma once

#include <span>

#include "kiln/base/environment.h"

namespace kiln::capi {

/// Reads "NAME=value" lines as Environment::read() reads the environment. Throws Error(invalid_argument) for a line
/// without a name, an unknown name and a value that its variable does not accept.
Environment environment_of(std::span<const char* const> settings);

}  // namespace kiln::capi
