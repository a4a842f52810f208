// The report of `kiln tune --report`: one page that needs nothing but itself.
#pragma once

#include <string>
#include <vector>

#include "tune_report.h"

namespace kiln::cli {

/// The whole page, of a report for each kind of card: HTML with its style and charts inside, no script, and nothing
/// that is fetched (its content security policy forbids it). Every text from outside is escaped.
std::string print_page(const std::vector<TuneReport>& reports);

/// The start of a page, for others too: the declaration, the policy and the style. `title` is escaped.
std::string page_head(const std::string& title);

}  // namespace kiln::cli
