#include "user_templates/user_kernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kiln/base/error.h"

namespace kiln {
namespace {

// `text` with comments, and what stands in quotation marks, as blanks: lines and columns stay.
std::string without_comments(std::string_view text) {
  std::string result(text);
  const auto blank = [&](size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, result.size()); ++i) {
      if (result[i] != '\n') result[i] = ' ';
    }
  };
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    size_t end = i + 1;
    if (rest.starts_with("//")) {
      end = std::min(text.find('\n', i), text.size());
      blank(i, end);
    } else if (rest.starts_with("/*")) {
      const size_t close = text.find("*/", i + 2);
      end = close == std::string_view::npos ? text.size() : close + 2;
      blank(i, end);
    } else if (rest.front() == '"') {
      while (end < text.size() && text[end] != '"' && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      blank(i + 1, end);
      ++end;
    }
    i = end;
  }
  return result;
}

std::vector<std::string_view> names_in(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  std::vector<std::string_view> names;
  for (size_t at = text.find_first_of(letters); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_not_of(letters, at), text.size());
    names.push_back(text.substr(at, end - at));
    at = text.find_first_of(letters, end);
  }
  return names;
}

size_t line_of(std::string_view text, size_t at) {
  return 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

// Line of the launch that names `kernel`, in the descriptor.
size_t line_of_kernel(std::string_view descriptor, const std::string& kernel) {
  const std::string value = fmt::format("\"{}\"", kernel);
  for (size_t at = descriptor.find(value); at != std::string_view::npos; at = descriptor.find(value, at + 1)) {
    const std::string_view before = descriptor.substr(0, descriptor.find_last_not_of(" \t\r\n:", at - 1) + 1);
    if (before.ends_with("\"kernel\"")) return line_of(descriptor, at);
  }
  return 1;
}

struct Condition {
  size_t line = 0;
  std::string_view text;
};

// The lines `#if` and its like, with those that a backslash continues them on.
std::vector<Condition> conditions_in(std::string_view code) {
  std::vector<Condition> result;
  size_t number = 1;
  for (size_t begin = 0; begin < code.size();) {
    size_t end = std::min(code.find('\n', begin), code.size());
    while (end > begin && end < code.size() && code[end - 1] == '\\')
      end = std::min(code.find('\n', end + 1), code.size());
    const std::string_view line = code.substr(begin, end - begin);
    const size_t hash = line.find_first_not_of(" \t");
    if (hash != std::string_view::npos && line[hash] == '#') {
      const std::vector<std::string_view> words = names_in(line);
      const bool asks =
          !words.empty() && (words[0] == "if" || words[0] == "elif" || words[0] == "ifdef" || words[0] == "ifndef");
      if (asks) result.push_back({number, line});
    }
    number += 1 + static_cast<size_t>(std::count(line.begin(), line.end(), '\n'));
    begin = end + 1;
  }
  return result;
}

}  // namespace

void check_kernel_text(const UserDescriptor& descriptor, const UserFiles& files,
                       const std::set<std::string, std::less<>>& constants) {
  const std::string code = without_comments(files.kernel);
  const std::vector<std::string_view> names = names_in(code);
  for (const UserDescriptor::LaunchStep& launch : descriptor.launches) {
    if (std::find(names.begin(), names.end(), launch.kernel) != names.end()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: line {}: {} holds no kernel {}", files.descriptor_name,
                            line_of_kernel(files.descriptor, launch.kernel), files.kernel_name, launch.kernel),
                "name an extern \"C\" __global__ function of the .cu");
  }
  for (const Condition& condition : conditions_in(code)) {
    for (const std::string_view name : names_in(condition.text)) {
      if (!constants.contains(name)) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: line {}: the preprocessor does not see {}, a constant of the template, and takes it "
                              "for undefined",
                              files.kernel_name, condition.line, name),
                  fmt::format("write `if constexpr ({})`, or choose between two functions", name));
    }
  }
}

}  // namespace kiln
