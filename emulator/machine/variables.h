// Memory and initial values of a module's .global and .const variables.
#pragma once

#include "decode/lowering.h"
#include "machine/program.h"
#include "ptx/ast.h"

namespace kiln::emulator {

/// Allocates the module's variables in `program`, declares them in `names`, and writes their initial values.
/// Throws LoadError for an initialiser that cannot be resolved.
void place_variables(const ptx::Module& module, Program& program, ModuleNames& names);

}  // namespace kiln::emulator
