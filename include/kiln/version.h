// The version of Kiln. Nothing here throws.
#pragma once

#include <string_view>

namespace kiln {

/// The version of the library in use, "0.1.0".
std::string_view version();

}  // namespace kiln
