#include "kiln/execution/user_code_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "kiln/generator/expression.h"

namespace kiln::execution {
namespace {

constexpr size_t most_errors = 5;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The parts of a line `user code(3): error: identifier "foo" is undefined`.
struct Complaint {
  std::string line;
  std::string_view what;
};

std::optional<Complaint> complaint(std::string_view text) {
  if (!text.starts_with(user_code_file)) return std::nullopt;
  text.remove_prefix(user_code_file.size());
  const size_t close = text.find("): ");
  if (!text.starts_with('(') || close == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(close + 3);
  const size_t what = rest.find(": ");
  if (!rest.starts_with("error") || what == std::string_view::npos) return std::nullopt;
  return Complaint{std::string(text.substr(1, close - 1)), rest.substr(what + 2)};
}

// The line behind an expression, which closes it and is not the user's (generator/user_code.cpp), as NVRTC shows it.
constexpr std::string_view closing_line = "    );";

// NVRTC shows the line, and below it a caret, both two columns in.
std::string shown(const std::vector<std::string_view>& lines, size_t at, const Complaint& complaint) {
  constexpr size_t indent = 2;
  const bool has_caret = at + 2 < lines.size() && lines[at + 2].find('^') != std::string_view::npos &&
                         lines[at + 2].find_first_not_of(" \t^") == std::string_view::npos;
  if (!has_caret) return fmt::format("line {}: {}", complaint.line, complaint.what);
  if (lines[at + 1] == closing_line) {
    int number = 0;
    std::from_chars(complaint.line.data(), complaint.line.data() + complaint.line.size(), number);
    return fmt::format("line {}, at its end: {}", number - 1, complaint.what);
  }
  return fmt::format("line {}, column {}: {}\n{}\n{}", complaint.line, lines[at + 2].find('^') - indent + 1,
                     complaint.what, lines[at + 1], lines[at + 2]);
}

}  // namespace

UserCodeError::UserCodeError(std::string message)
    : Error(ErrorCode::compile_failed, std::move(message),
            "docs/user-code.md lists the values and functions it may use") {}

std::optional<std::string> user_code_errors(std::string_view log) {
  const std::vector<std::string_view> lines = lines_of(log);
  std::string text;
  size_t count = 0;
  for (size_t i = 0; i < lines.size() && count < most_errors; ++i) {
    if (const auto found = complaint(lines[i])) {
      text += fmt::format("\n{}", shown(lines, i, *found));
      ++count;
    } else if (lines[i].find("missing return statement") != std::string_view::npos &&
               lines[i].find("user_code::") != std::string_view::npos) {
      // The end of the function stands behind the user's text.
      text += "\nits statements end without a return";
      ++count;
    }
  }
  if (count == 0) return std::nullopt;
  return fmt::format("the {} does not compile:{}", user_code_file, text);
}

}  // namespace kiln::execution
