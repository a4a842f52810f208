// What `kiln tune` says in the end: a table, or JSON.
#pragma once

#include <string>
#include <vector>

#include "input.h"
#include "kiln/tuner/laboratory.h"
#include "kiln/tuner/session.h"

namespace kiln::cli {

struct TuneReport {
  const tuner::Apparatus& apparatus;
  const std::vector<tuner::JobResult>& results;
  const std::vector<NotCovered>& not_covered;
  std::string database;  ///< Where the records are, in words.
  size_t reused = 0;     ///< Trials that were in the database before.
};

std::string print_table(const TuneReport& report);
std::string print_json(const TuneReport& report);

/// Whether every layer has a variant to use.
bool all_served(const std::vector<tuner::JobResult>& results);

}  // namespace kiln::cli
