// PTX text to syntax tree. Checks the grammar only; names, types and instructions are checked when decoding.
#pragma once

#include <string_view>

#include "ptx/ast.h"

namespace kiln::emulator::ptx {

/// The tree's names are views into `text`. Debug information (.loc, .file, .section) is skipped.
/// Throws LoadError with the line of the first thing that is not PTX.
Module parse(std::string_view text);

}  // namespace kiln::emulator::ptx
