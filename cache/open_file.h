// Opening a database file whatever state it is in.
#pragma once

#include <optional>
#include <string>

#include "kiln/cache/database.h"
#include "sqlite.h"

namespace kiln::cache {

/// Why a file is not in use as asked, without the sentence on how Kiln goes on.
struct Problem {
  Trouble trouble = Trouble::unreachable;
  std::string what;
  std::string hint;
  bool readable = false;  ///< Whether reading the file may go on.
};

struct OpenedFile {
  std::optional<Connection> db;  ///< With the current schema; empty if the file cannot even be read.
  bool writable = false;
  std::optional<Problem> problem;  ///< Set if the file cannot be read, or not written although that was asked for.
};

/// Never throws SqliteFault, and never writes to a file that is corrupt, foreign or newer.
OpenedFile open_file(const std::string& path, const OpenOptions& options);

/// Problem that a fault of SQLite means to the user.
Problem problem_of(const SqliteFault& fault, const std::string& path);

}  // namespace kiln::cache
