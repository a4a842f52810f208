// The report of `kiln tune --report`: one page that needs nothing but itself.
#pragma once

#include <string>

#include "tune_report.h"

namespace kiln::cli {

/// The whole page: HTML with its style and charts inside, no script, and nothing that is fetched (its content security
/// policy forbids it). Every text from outside is escaped.
std::string print_page(const TuneReport& report);

}  // namespace kiln::cli
