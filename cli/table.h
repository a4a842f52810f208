// A table for a terminal: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

class Table {
 public:
  /// A heading that starts with '>' is of a column of numbers, aligned to the right.
  explicit Table(std::vector<std::string> headings);
  /// As many cells as headings.
  void add(std::vector<std::string> cells);
  std::string print() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // the headings first
};

}  // namespace kiln::cli
