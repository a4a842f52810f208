// User templates: kernels that an application brings along, read at run time. docs/user-code.md is their manual.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/catalogue.h"
#include "kiln/generator/specialise.h"

namespace kiln {

/// Told what is wrong with a user template, which is then left out. Empty: it is thrown.
using FaultyTemplate = std::function<void(const Error&)>;

/// The files NAME.cu and NAME.json of some folders, by their paths in a SourceLibrary ("user/NAME.cu").
///
/// Throws Error(io_error) if a folder cannot be read, Error(invalid_argument) for one that holds no user template.
/// Tells `faulty` of Error(io_error) for a file that cannot be read, and of Error(invalid_argument) for a .cu without
/// its .json or the reverse, a file that is too large, and a name that stands twice or is no name (lower-case letters,
/// digits and underscores).
SourceLibrary read_user_templates(const std::vector<std::string>& folders, const FaultyTemplate& faulty = {});

/// The algorithms that the files of `user` describe, to be generated from a library that holds these and Kiln's pieces.
///
/// Tells `faulty` of Error(parse_error, invalid_argument) naming file and field if a descriptor is wrong, also for
/// names in its expressions that its operation does not have.
std::vector<Algorithm> user_algorithms(const SourceLibrary& user, const FaultyTemplate& faulty = {});

/// Runs `make`. What it throws of a user template, `faulty` is told.
void leave_out_if_faulty(const std::function<void()>& make, const FaultyTemplate& faulty);

}  // namespace kiln
