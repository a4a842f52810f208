// Name of one source of a program in messages.
#pragma once

#include <string>

#include "kiln/generator/program.h"

namespace kiln::execution {

/// The name of the first kernel launched from that source, with ".cu" after it.
std::string source_name(const Program& program, size_t source);

}  // namespace kiln::execution
