// User templates: kernels that an application brings along, read at run time. docs/user-code.md is their manual.
#pragma once

#include <string>
#include <vector>

#include "kiln/generator/catalogue.h"
#include "kiln/generator/specialise.h"

namespace kiln {

/// The files NAME.cu and NAME.json of some folders, by their paths in a SourceLibrary ("user/NAME.cu").
///
/// Throws Error(io_error) if a folder or file cannot be read, and Error(invalid_argument) for a .cu without its .json
/// or the reverse, for a folder with neither, a file that is too large, and a name that stands twice or is no name
/// (lower- case letters, digits and underscores).
SourceLibrary read_user_templates(const std::vector<std::string>& folders);

/// The algorithms that the files of `user` describe, to be generated from a library that holds these and Kiln's pieces.
///
/// Throws Error(parse_error, invalid_argument) naming file and field if a descriptor is wrong, also for names in its
/// expressions that its operation does not have.
std::vector<Algorithm> user_algorithms(const SourceLibrary& user);

}  // namespace kiln
