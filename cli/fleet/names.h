// Layers as people call them.
#pragma once

#include <string>

namespace kiln::cli {

/// summary() of a request's line; the line itself if this Kiln cannot read it.
std::string layer_text(const std::string& request);

}  // namespace kiln::cli
