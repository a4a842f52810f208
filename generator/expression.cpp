#include "kiln/generator/expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "text_parsing.h"
#include "user_text.h"

namespace kiln {
namespace {

constexpr size_t longest_text = 64 * 1024;
constexpr size_t longest_name = 32;
constexpr size_t digest_digits = 32;
constexpr std::string_view epilogue_mark = "---", prologue_mark = "--- prologue";
constexpr std::string_view rounded_prologue_mark = "--- rounded prologue";

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

void check_characters(std::string_view text) {
  if (text.empty()) throw Error(ErrorCode::parse_error, "user code is empty", "write for example acc * sigmoid(acc)");
  if (text.size() > longest_text) {
    throw Error(ErrorCode::parse_error,
                fmt::format("user code has {} bytes, the most is {}", text.size(), longest_text));
  }
  check_user_characters(text);
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
  bool rounds_prologue = false;

  explicit Parts(std::string_view text) {
    const bool marked = has_mark(text);
    Expression::Part* current = marked ? &functions : &epilogue;
    int line = 0;
    size_t at = 0;
    for (std::string_view content : text::split(text, '\n')) {
      ++line;
      if (text::trimmed(content) == text::definition_end) {
        refuse_user_text(text, at, "this line would end its definition in a requests file",
                         "write something else in that line");
      }
      const bool begins_prologue = is_prologue_mark(content), begins_epilogue = content == epilogue_mark;
      if (begins_prologue && current != &functions)
        refuse_user_text(text, at, "a prologue stands before the epilogue, and once");
      if (begins_epilogue && current == &epilogue && marked) refuse_user_text(text, at, "there are two epilogues");
      if (begins_prologue || begins_epilogue) {
        current = begins_prologue ? &prologue : &epilogue;
        current->line = line + 1;
        rounds_prologue = rounds_prologue || content == rounded_prologue_mark;
      } else {
        current->text.append(content).append("\n");
      }
      at += content.size() + 1;
    }
  }

 private:
  static bool is_prologue_mark(std::string_view line) { return line == prologue_mark || line == rounded_prologue_mark; }
  static bool has_mark(std::string_view text) {
    for (std::string_view line : text::split(text, '\n')) {
      if (line == epilogue_mark || is_prologue_mark(line)) return true;
    }
    return false;
  }
};

// A part of the text, and the words of its code.
struct ReadPart {
  Expression::Part part;
  std::set<std::string, std::less<>> words;

  // Whether what is called takes an instruction or two, or is none: `if (`.
  static bool is_short(std::string_view called) {
    constexpr std::array<std::string_view, 18> names{
        "relu", "leaky_relu", "clamp", "hard_sigmoid", "fminf", "fmaxf", "fabsf", "fmaf",   "min",
        "max",  "abs",        "float", "int",          "if",    "for",   "while", "return", "sizeof"};
    return std::find(names.begin(), names.end(), called) != names.end();
  }

  explicit ReadPart(Expression::Part&& taken) : part(std::move(taken)) {
    // Each part is placed by itself, so each must be whole by itself. Empty lines keep its positions right.
    const std::string placed = std::string(static_cast<size_t>(part.line - 1), '\n') + part.text;
    const std::vector<CodeToken> tokens = tokens_of_user_code(placed);
    if (tokens.empty()) part.text.clear();
    part.one_expression = tokens.empty() || (tokens.back().text != ";" && tokens.back().text != "}");
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind != CodeToken::Kind::word) continue;
      words.emplace(tokens[i].text);
      if (i + 1 < tokens.size() && tokens[i + 1].text == "(" && !is_short(tokens[i].text)) ++part.long_calls;
    }
  }
};

// Puts the tensors that the prologue reads behind the others, which are counted.
size_t order_by_part(std::vector<std::string>& tensors, const ReadPart& prologue, const ReadPart& epilogue) {
  for (const std::string& name : tensors) {
    if (!prologue.words.contains(name) || !epilogue.words.contains(name)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("user code: the tensor {} stands in the prologue and in the epilogue", name),
                "give it a name for each");
  }
  std::sort(tensors.begin(), tensors.end());
  const auto first = std::stable_partition(tensors.begin(), tensors.end(),
                                           [&](const std::string& name) { return !prologue.words.contains(name); });
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
  content->rounds_prologue = parts.rounds_prologue;
  ReadPart functions(std::move(parts.functions)), prologue(std::move(parts.prologue)),
      epilogue(std::move(parts.epilogue));
  if (prologue.part.empty() && epilogue.part.empty()) {
    throw Error(ErrorCode::parse_error, "user code holds no expression", "write for example acc + 1");
  }
  content->epilogue_tensors = order_by_part(content->tensors, prologue, epilogue);
  content->functions = std::move(functions.part);
  content->prologue = std::move(prologue.part);
  content->epilogue = std::move(epilogue.part);

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
