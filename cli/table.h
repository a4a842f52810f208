// A table for a terminal: columns as wide as their widest cell, or as the terminal permits.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace kiln::cli {

class Table {
 public:
  /// Each row in one line, however long it is.
  static constexpr size_t unlimited = std::numeric_limits<size_t>::max();

  /// A heading that starts with '>' is of a column of numbers, aligned to the right.
  explicit Table(std::vector<std::string> headings);
  /// As many cells as headings. They may come from outside: printable_line() of each is shown.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  /// In lines of at most `width` bytes, as far as columns can be that narrow: the widest ones are, and their cells take
  /// several lines, broken after blanks, commas and slashes as long as the width permits. Nothing is left out.
  std::string print(size_t width = unlimited) const;

 private:
  using Row = std::vector<std::string>;

  std::vector<size_t> fitted_widths(size_t width) const;
  size_t width_of_numbers(size_t column) const;
  std::string print_row(const Row& row, const std::vector<size_t>& widths) const;

  std::vector<bool> right_;
  std::vector<Row> rows_;  // the headings first
};

}  // namespace kiln::cli
