// A pack read for its winners only: what opening an application's cache does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "front.h"

namespace kiln::cache {

/// Visits the fronts of the pack `text`. Fields that do not decide about winning are not looked at; importing checks
/// them. Returns what was left out, "line N: ...", at most `max_pack_problems` and a count of the rest.
std::vector<std::string> visit_pack_fronts(std::string_view text, FrontVisitor& visitor);

inline constexpr std::size_t max_pack_problems = 20;

/// The bytes of a file. Throws Error(io_error).
std::string read_pack_text(const std::string& path);

}  // namespace kiln::cache
