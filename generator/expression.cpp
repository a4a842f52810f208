#include "kiln/generator/expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "text.h"

namespace kiln {
namespace {

constexpr size_t longest_text = 64 * 1024;
constexpr size_t longest_name = 32;
constexpr size_t digest_digits = 32;
constexpr std::string_view epilogue_mark = "---", prologue_mark = "--- prologue";

[[noreturn]] void fail(std::string_view text, size_t at, std::string_view what, std::string hint = {}) {
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view shown = text.substr(start, text.find('\n', start) - start);
  throw Error(ErrorCode::parse_error,
              fmt::format("user code, line {}, column {}: {}\n  {}\n  {:>{}}", line, at - start + 1, what, shown, '^',
                          at - start + 1),
              std::move(hint));
}

// Lines end in \n without trailing blanks; no empty lines at the end.
std::string canonical(std::string_view text) {
  std::string result;
  for (std::string_view line : text::split(text, '\n')) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
    result += line;
    result += '\n';
  }
  while (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

// Bytes of the UTF-8 sequence at `at`; 0 if there is none.
size_t sequence_length(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

void check_characters(std::string_view text) {
  if (text.empty()) throw Error(ErrorCode::parse_error, "user code is empty", "write for example acc * sigmoid(acc)");
  if (text.size() > longest_text) {
    throw Error(ErrorCode::parse_error,
                fmt::format("user code has {} bytes, the most is {}", text.size(), longest_text));
  }
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) fail(text, at, "this is not UTF-8");
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) fail(text, at, "this is a control character");
    at += length;
  }
}

// Walks over code, skipping comments and literals: calls visit(position) for every other character.
template <class Visit>
void for_each_code_character(std::string_view text, const Visit& visit) {
  size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (rest.starts_with("/*")) {
      const size_t end = text.find("*/", at + 2);
      if (end == std::string_view::npos) fail(text, at, "this comment does not end");
      at = end + 2;
    } else if (text[at] == '"' || text[at] == '\'') {
      size_t end = at + 1;
      while (end < text.size() && text[end] != text[at] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      if (end >= text.size() || text[end] != text[at]) fail(text, at, "this quotation mark has no other half");
      at = end + 1;
    } else {
      visit(at);
      ++at;
    }
  }
}

// Code that closes more than it opens would end the function that it is placed in.
void check_structure(std::string_view text) {
  std::vector<size_t> open;
  for_each_code_character(text, [&](size_t at) {
    const char c = text[at];
    constexpr std::string_view opening = "([{", closing = ")]}";
    if (c == '\\') fail(text, at, "there is no place for a backslash here");
    if (c == '#' && !text.substr(at).starts_with("#pragma ")) {
      fail(text, at, "only #pragma may stand in user code", "use constants and functions instead of the preprocessor");
    }
    if (opening.find(c) != std::string_view::npos) open.push_back(at);
    const size_t kind = closing.find(c);
    if (kind == std::string_view::npos) return;
    if (open.empty()) fail(text, at, fmt::format("this '{}' closes nothing", c));
    if (text[open.back()] != opening[kind]) {
      fail(text, at, fmt::format("this '{}' does not close the '{}' before it", c, text[open.back()]));
    }
    open.pop_back();
  });
  if (!open.empty()) fail(text, open.back(), fmt::format("this '{}' is never closed", text[open.back()]));
}

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  return !name.empty() && name.size() <= longest_name && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); }) &&
         name.find("__") == std::string_view::npos;
}

bool is_reserved(std::string_view name) {
  static const std::set<std::string_view> words = {
      "acc",      "auto",     "bool",   "break",    "c",       "case",     "char",   "class",  "const",   "constexpr",
      "continue", "default",  "delete", "do",       "double",  "else",     "enum",   "extern", "false",   "float",
      "for",      "goto",     "if",     "inline",   "int",     "k",        "long",   "n",      "new",     "not",
      "nullptr",  "operator", "or",     "and",      "private", "public",   "return", "short",  "signed",  "sizeof",
      "static",   "struct",   "switch", "template", "this",    "throw",    "true",   "try",    "typedef", "union",
      "unsigned", "using",    "values", "virtual",  "void",    "volatile", "while",  "x"};
  return words.contains(name);
}

void check_names(const std::vector<std::string>& tensors, const std::vector<std::string>& scalars) {
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ErrorCode::invalid_argument, "user code: " + what, hint);
  };
  if (tensors.size() > Expression::max_tensors || scalars.size() > Expression::max_scalars) {
    refuse(fmt::format("it reads {} tensors and {} scalars", tensors.size(), scalars.size()),
           fmt::format("the most are {} and {}", Expression::max_tensors, Expression::max_scalars));
  }
  std::set<std::string_view> seen;
  for (const auto* names : {&tensors, &scalars}) {
    for (const std::string& name : *names) {
      if (!is_identifier(name)) {
        refuse(fmt::format("'{}' cannot be the name of a value", name),
               "use up to 32 letters, digits and single underscores, a letter first");
      }
      if (is_reserved(name)) refuse(fmt::format("the name '{}' is taken", name), "choose another one");
      if (!seen.insert(name).second) refuse(fmt::format("two values are called '{}'", name), "choose another name");
    }
  }
}

// Splits the text at its marks.
struct Parts {
  Expression::Part functions, prologue, epilogue;

  explicit Parts(std::string_view text) {
    const bool marked = has_mark(text);
    Expression::Part* current = marked ? &functions : &epilogue;
    int line = 0;
    size_t at = 0;
    for (std::string_view content : text::split(text, '\n')) {
      ++line;
      if (text::trimmed(content) == text::definition_end) {
        fail(text, at, "this line would end its definition in a requests file", "write something else in that line");
      }
      const bool begins_prologue = content == prologue_mark, begins_epilogue = content == epilogue_mark;
      if (begins_prologue && current != &functions) fail(text, at, "a prologue stands before the epilogue, and once");
      if (begins_epilogue && current == &epilogue && marked) fail(text, at, "there are two epilogues");
      if (begins_prologue || begins_epilogue) {
        current = begins_prologue ? &prologue : &epilogue;
        current->line = line + 1;
      } else {
        current->text.append(content).append("\n");
      }
      at += content.size() + 1;
    }
  }

 private:
  static bool has_mark(std::string_view text) {
    for (std::string_view line : text::split(text, '\n')) {
      if (line == epilogue_mark || line == prologue_mark) return true;
    }
    return false;
  }
};

char last_code_character(std::string_view body) {
  char last = '\0';
  for_each_code_character(body, [&](size_t at) {
    if (std::isspace(static_cast<unsigned char>(body[at])) == 0) last = body[at];
  });
  return last;
}

// The words of code: names, and whatever else begins with a letter or a digit.
std::set<std::string> words_of(const Expression::Part& part) {
  std::string code(part.text.size(), ' ');
  for_each_code_character(part.text, [&](size_t at) {
    const char c = part.text[at];
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') code[at] = c;
  });
  std::set<std::string> words;
  for (std::string_view word : text::split(code, ' ')) words.emplace(word);
  return words;
}

// Puts the tensors that the prologue reads behind the others, which are counted.
size_t order_by_part(std::vector<std::string>& tensors, const Expression::Part& prologue,
                     const Expression::Part& epilogue) {
  const std::set<std::string> before = words_of(prologue), after = words_of(epilogue);
  for (const std::string& name : tensors) {
    if (!before.contains(name) || !after.contains(name)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("user code: the tensor {} stands in the prologue and in the epilogue", name),
                "give it a name for each");
  }
  std::sort(tensors.begin(), tensors.end());
  const auto first = std::stable_partition(tensors.begin(), tensors.end(),
                                           [&](const std::string& name) { return !before.contains(name); });
  return static_cast<size_t>(first - tensors.begin());
}

}  // namespace

Expression::Expression(std::string_view text, std::vector<std::string> tensors, std::vector<std::string> scalars) {
  auto content = std::make_shared<Content>();
  content->text = canonical(text);
  content->tensors = std::move(tensors);
  content->scalars = std::move(scalars);
  check_characters(content->text);
  check_names(content->tensors, content->scalars);

  Parts parts(content->text);
  for (Expression::Part* part : {&parts.functions, &parts.prologue, &parts.epilogue}) {
    // Each part is placed by itself, so each must be balanced by itself. Empty lines keep its positions right.
    check_structure(std::string(static_cast<size_t>(part->line - 1), '\n') + part->text);
    const char last = last_code_character(part->text);
    if (last == '\0') part->text.clear();
    part->one_expression = last != ';' && last != '}';
  }
  if (parts.prologue.empty() && parts.epilogue.empty()) {
    throw Error(ErrorCode::parse_error, "user code holds no expression", "write for example acc + 1");
  }
  content->epilogue_tensors = order_by_part(content->tensors, parts.prologue, parts.epilogue);
  content->functions = std::move(parts.functions);
  content->prologue = std::move(parts.prologue);
  content->epilogue = std::move(parts.epilogue);

  Digest digest;
  digest.add("expression").add(content->text).add(std::to_string(content->tensors.size()));
  for (const auto* names : {&content->tensors, &content->scalars}) {
    for (const std::string& name : *names) digest.add(name);
  }
  content->digest = digest.hex();
  for (size_t half = 0; half < 2; ++half) {
    uint64_t word = 0;
    const char* const digits = content->digest.data() + half * digest_digits / 2;
    std::from_chars(digits, digits + digest_digits / 2, word, 16);
    content->words[half] = static_cast<int64_t>(word);
  }
  content_ = std::move(content);
}

bool is_expression_digest(std::string_view text) {
  return text.size() == digest_digits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string print_definition(std::string_view name, const Expression& expression) {
  if (!text::is_definition_name(name) || (is_expression_digest(name) && name != expression.digest())) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' cannot be the name of this expression", name),
                "use letters, digits, _ and -, or its digest()");
  }
  return fmt::format("expression {}({}; {})\n{}\n{}\n", name, fmt::join(expression.tensors(), ", "),
                     fmt::join(expression.scalars(), ", "), expression.text(), text::definition_end);
}

}  // namespace kiln
