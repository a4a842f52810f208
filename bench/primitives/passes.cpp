#include "passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln::bench {
namespace {

[[noreturn]] void fail(size_t line, const std::string& what) {
  throw Error(ErrorCode::parse_error, fmt::format("line {} of the table of passes: {}", line, what));
}

std::string_view without_spaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// `x` or `x*2`.
Passes parse_pass(std::string_view word, size_t line) {
  const size_t star = word.find('*');
  Passes passes{std::string(word.substr(0, star)), 1};
  if (star != std::string_view::npos) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data() + star + 1, end, passes.count);
    if (error != std::errc() || rest != end || passes.count < 0) passes.operand.clear();
  }
  if (passes.operand.empty()) fail(line, fmt::format("'{}' where NAME or NAME*COUNT is expected", word));
  return passes;
}

// What a line that begins without a space holds: passes, a colon and the reason.
struct Declaration {
  std::vector<Passes> passes;
  std::string reason;
};

Declaration parse_declaration(std::string_view text, size_t line) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) fail(line, "passes are followed by a colon and the reason");
  Declaration result{{}, std::string(without_spaces(text.substr(colon + 1)))};
  if (result.reason.empty()) fail(line, "these passes have no reason");
  std::string_view words = without_spaces(text.substr(0, colon));
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    result.passes.push_back(parse_pass(words.substr(0, end), line));
    words = without_spaces(words.substr(end));
  }
  return result;
}

bool names(const std::vector<Passes>& passes, std::string_view operand) {
  return std::any_of(passes.begin(), passes.end(), [&](const Passes& p) { return p.operand == operand; });
}

DeclaredRow declared(std::string_view request, const Declaration& declaration, size_t line) {
  DeclaredRow row{Request::parse(request), declaration.passes, declaration.reason};
  for (const Operand& operand : row.request.operands) {
    if (!names(row.passes, operand.name)) fail(line, fmt::format("no passes are declared for {}", operand.name));
  }
  for (const Passes& passes : row.passes) {
    if (passes.operand != workspace_name && row.request.find(passes.operand) == nullptr)
      fail(line, fmt::format("the request has no operand {}", passes.operand));
  }
  return row;
}

bool is_always_f32(std::string_view request, std::string_view operand) {
  const Operation* const known = find_operation(request.substr(0, request.find(' ')));
  if (known == nullptr) return false;
  const std::vector<OperandDefinition>& all = known->operands();
  return std::any_of(all.begin(), all.end(), [&](const OperandDefinition& definition) {
    return definition.name == operand && definition.dtypes == DTypes::only_f32;
  });
}

// But for the operands of which the operation says that they are f32: saved means.
std::string in_f16(std::string_view request) {
  constexpr std::string_view f32 = "=f32:";
  std::string text(request);
  for (size_t at = text.find(f32); at != std::string::npos; at = text.find(f32, at + f32.size())) {
    const size_t word = text.rfind(' ', at) + 1;
    if (!is_always_f32(request, request.substr(word, at - word))) text.replace(at, f32.size(), "=f16:");
  }
  return text;
}

}  // namespace

std::vector<DeclaredRow> parse_passes(std::string_view text) {
  std::vector<DeclaredRow> rows;
  Declaration declaration;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, std::min(end, text.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (without_spaces(line).empty()) continue;
    if (line.front() != ' ') {
      declaration = parse_declaration(line, number);
      continue;
    }
    if (declaration.passes.empty()) fail(number, "a request before any passes");
    const std::string_view request = without_spaces(line);
    rows.push_back(declared(request, declaration, number));
    rows.push_back(declared(in_f16(request), declaration, number));
  }
  return rows;
}

double declared_bytes(const DeclaredRow& row, int64_t workspace_bytes) {
  int64_t bytes = 0;
  for (const Passes& passes : row.passes) {
    const TensorSpec* const spec = row.request.find(passes.operand);
    bytes += passes.count * (spec == nullptr ? workspace_bytes : spec->elements() * size_of(spec->dtype));
  }
  return static_cast<double>(bytes);
}

double traffic_limit(const Request& request) {
  return request.operation.find("_backward") == std::string::npos ? 1.1 : 1.25;
}

}  // namespace kiln::bench
