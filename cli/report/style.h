// The report's style sheet: report.css, embedded when Kiln is built.
#pragma once

#include <string_view>

namespace kiln::cli {

extern const std::string_view page_style;

}  // namespace kiln::cli
