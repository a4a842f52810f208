// Whether a compiled program that came from outside can be run at all.
#pragma once

#include <string>

#include "kiln/execution/compile.h"

namespace kiln::execution {

/// Fault of `compiled`, in words; empty if it has none. Programs made by a Catalogue and compiled here are right by
/// construction.
std::string fault_of(const CompiledProgram& compiled);

}  // namespace kiln::execution
