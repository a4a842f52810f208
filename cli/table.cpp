#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "kiln/base/printable.h"

namespace kiln::cli {
namespace {

constexpr std::string_view gap = "  ";
constexpr size_t narrowest = 12;  // of a column that is cut to fit

// Where a line of at most `width` bytes of `text` ends: after a blank or a comma, else after a slash, as in the names
// of nodes and files, else within a word, but not within a character of several bytes.
size_t line_end(std::string_view text, size_t width) {
  if (text.size() <= width) return text.size();
  if (text[width] == ' ') return width;
  for (const char* const ends : {" ,", "/"}) {
    if (const size_t at = text.substr(0, width).find_last_of(ends); at != std::string_view::npos) return at + 1;
  }
  const auto inside_character = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U; };
  size_t end = std::max<size_t>(width, 1);
  while (end > 1 && inside_character(end)) --end;
  return end;
}

std::vector<std::string_view> lines_of(std::string_view text, size_t width) {
  std::vector<std::string_view> lines;
  do {
    const size_t end = line_end(text, width);
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    while (line.ends_with(' ')) line.remove_suffix(1);
    while (text.starts_with(' ')) text.remove_prefix(1);
    lines.push_back(line);
  } while (!text.empty());
  return lines;
}

size_t longest_word(std::string_view text) {
  size_t longest = 0, length = 0;
  for (const char c : text) {
    length = c == ' ' ? 0 : length + 1;
    longest = std::max(longest, length);
  }
  return longest;
}

// Length of the longest piece that line_end() keeps together where it can.
size_t longest_piece(std::string_view text) {
  size_t longest = 0, length = 0;
  for (const char c : text) {
    length = c == ' ' ? 0 : length + 1;
    longest = std::max(longest, length);
    if (c == ',' || c == '/') length = 0;
  }
  return longest;
}

}  // namespace

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable_line(cell);
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::fitted_widths(size_t width) const {
  std::vector<size_t> widths(right_.size(), 0);
  for (const Row& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto needed_by = [](const std::vector<size_t>& columns) {
    return std::accumulate(columns.begin(), columns.end(), gap.size() * (columns.size() - 1));
  };
  if (needed_by(widths) <= width) return widths;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (right_[i]) widths[i] = width_of_numbers(i);
  }
  // First no word is cut; only where that does not do, some are.
  std::vector<size_t> least(widths.size(), narrowest);
  for (const Row& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) least[i] = std::max(least[i], longest_piece(row[i]));
  }
  size_t needed = needed_by(widths);
  for (const std::vector<size_t>& limits : {least, std::vector<size_t>(widths.size(), narrowest)}) {
    while (needed > width) {
      size_t widest = widths.size();
      for (size_t i = 0; i < widths.size(); ++i) {
        if (widths[i] > limits[i] && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
      }
      if (widest == widths.size()) break;
      --widths[widest];
      --needed;
    }
  }
  return widths;
}

// Width of a column whose heading takes a line for each of its words.
size_t Table::width_of_numbers(size_t column) const {
  size_t width = longest_word(rows_.front()[column]);
  for (size_t i = 1; i < rows_.size(); ++i) width = std::max(width, rows_[i][column].size());
  return width;
}

std::string Table::print_row(const Row& row, const std::vector<size_t>& widths) const {
  std::vector<std::vector<std::string_view>> cells;
  size_t height = 1;
  for (size_t i = 0; i < row.size(); ++i) {
    cells.push_back(lines_of(row[i], widths[i]));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (size_t at = 0; at < height; ++at) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += gap;
      const std::string_view cell = at < cells[i].size() ? cells[i][at] : std::string_view();
      line += right_[i] ? fmt::format("{:>{}}", cell, widths[i]) : fmt::format("{:<{}}", cell, widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Table::print(size_t width) const {
  const std::vector<size_t> widths = fitted_widths(width);
  std::string text;
  for (const Row& row : rows_) text += print_row(row, widths);
  return text;
}

}  // namespace kiln::cli
