// Every stored candidate of a request, with the reason why it is not the one that is used.
#pragma once

#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/record.h"

namespace kiln::cli {

/// A record and what is to be said of it.
struct ExplainedTrial {
  cache::Record record;
  std::string why;  ///< "wins", "12.0% slower", "a tie, with more workspace", "stale: ...", "wrong_result: ..."
};

/// Explains the records of one request on one device: those that can be used first, fastest first; then stale ones;
/// then those that failed. The reasons are about a choice without limits on workspace or reproducibility.
std::vector<ExplainedTrial> explain_trials(std::vector<cache::Record> records, const cache::IsCurrent& is_current);

/// Where the rule of ties decided between the winner of these records and a faster one: which, and by what. Else empty.
std::string tie_text(const std::vector<cache::Record>& records, const cache::IsCurrent& is_current);

}  // namespace kiln::cli
