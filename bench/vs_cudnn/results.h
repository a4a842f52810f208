// The file of results: one JSON object a line, written as rows finish, so that a run that was stopped goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comparison.h"

namespace kiln::bench {

/// Conditions that rows must share to stand in one table.
struct Conditions {
  std::string device;  ///< The DeviceId.
  std::string driver, cudnn, kiln;

  friend bool operator==(const Conditions&, const Conditions&) = default;
};

/// One line without its end.
std::string to_line(const Conditions& conditions, const RowResult& row);
/// The reverse; nothing for a line that is no such object, as the last one of a killed run may be.
std::optional<std::pair<Conditions, RowResult>> from_line(const std::string& line);

/// The conditions of the rows in a file, in the order of their first rows. Throws Error(io_error).
std::vector<Conditions> conditions_in(const std::string& path);

/// An open file of results.
class ResultFile {
 public:
  /// Reads what is there; rows of other conditions stay in the file and are passed over. Throws Error(io_error).
  ResultFile(std::string path, Conditions conditions);

  const std::vector<RowResult>& rows() const { return rows_; }
  const RowResult* find(const std::string& request) const;
  /// Appends a row and flushes. Throws Error(io_error).
  void add(const RowResult& row);

 private:
  std::string path_;
  Conditions conditions_;
  std::vector<RowResult> rows_;
};

/// The table of all rows in the order of `requests`, then the geometric mean of those compared.
std::string print_table(const ResultFile& results, const std::vector<std::string>& requests);

}  // namespace kiln::bench
