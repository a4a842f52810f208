// Faults in the text of a user's kernel that no compiler reports, or reports at another place.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "user_templates/user_descriptor.h"

namespace kiln {

/// The files of one user template, with the names that messages call them by.
struct UserFiles {
  std::string_view kernel_name, kernel;          ///< "conv_stem.cu" and its text
  std::string_view descriptor_name, descriptor;  ///< "conv_stem.json" and its text
};

/// Throws Error(invalid_argument), naming file and line, for
///
/// - a launch of a kernel whose name the .cu does not hold: the driver would only say that there is no such function;
/// - `#if`, `#elif`, `#ifdef` and `#ifndef` that ask for one of `constants`: these are constexpr, so the preprocessor
///   takes them for undefined, and for 0.
void check_kernel_text(const UserDescriptor& descriptor, const UserFiles& files,
                       const std::set<std::string, std::less<>>& constants);

}  // namespace kiln
