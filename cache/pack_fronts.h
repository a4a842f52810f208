// A pack read for its winners only: what opening an application's cache does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "front.h"

namespace kiln::cache {

inline constexpr std::size_t max_pack_problems = 20;

/// Visits the fronts of a pack. Fields that do not decide about winning are not looked at; importing checks them.
/// Returns what was left out, "line N: ...", at most max_pack_problems and a count of the rest.
std::vector<std::string> visit_pack_fronts(std::string_view text, FrontVisitor& visitor);

/// The same for a file, which is never in memory as a whole. Throws Error(io_error).
std::vector<std::string> visit_pack_file_fronts(const std::string& path, FrontVisitor& visitor);

}  // namespace kiln::cache
