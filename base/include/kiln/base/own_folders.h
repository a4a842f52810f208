// Where the code that runs lies, whatever the working directory is.
#pragma once

#include <filesystem>
#include <vector>

namespace kiln {

/// Folders of the library that contains this code, if it is in one, and of the running program, in this order; absolute
/// and behind links. Files of the installation are found from them.
///
/// Nothing of it depends on the working directory, nor on what the caller of the program passed as its name (argv[0]).
/// So a library that was loaded by a relative path is left out: where that led is not known any more.
std::vector<std::filesystem::path> own_folders();

}  // namespace kiln
