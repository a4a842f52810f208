#include "declared_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <utility>

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

// A number that is not negative and has nothing behind it.
bool read_count(std::string_view text, double& count) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && rest == text.data() + text.size() && count >= 0;
}

// `x`, `x*2`, `f32(x)*2`, `f32(x)*4.5`.
Passes parse_pass(std::string_view word, size_t line) {
  const size_t star = word.find('*');
  std::string_view name = word.substr(0, star);
  Passes passes;
  passes.as_f32 = name.starts_with("f32(") && name.ends_with(')');
  if (passes.as_f32) name = name.substr(4, name.size() - 5);
  if (star != std::string_view::npos && !read_count(word.substr(star + 1), passes.count)) name = {};
  if (name.empty()) fail(line, fmt::format("'{}' where NAME, NAME*COUNT or f32(NAME)*COUNT is expected", word));
  passes.operand = name;
  return passes;
}

constexpr std::string_view requested_limit = "requested<=";

// Content of a line that begins without a space: passes, a colon and the reason.
struct Declaration {
  std::vector<Passes> passes;
  std::string reason;
  double requested = usual_requested;
};

Declaration parse_declaration(std::string_view text, size_t line) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) fail(line, "passes are followed by a colon and the reason");
  Declaration result{{}, std::string(without_spaces(text.substr(colon + 1))), usual_requested};
  if (result.reason.empty()) fail(line, "these passes have no reason");
  std::string_view words = without_spaces(text.substr(0, colon));
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    if (!word.starts_with(requested_limit)) {
      result.passes.push_back(parse_pass(word, line));
    } else if (!read_count(word.substr(requested_limit.size()), result.requested)) {
      fail(line, fmt::format("'{}' where requested<=COUNT is expected", word));
    }
    words = without_spaces(words.substr(end));
  }
  return result;
}

bool names(const std::vector<Passes>& passes, std::string_view operand) {
  return std::any_of(passes.begin(), passes.end(), [&](const Passes& p) { return p.operand == operand && !p.as_f32; });
}

DeclaredRow declared(Request request, const Declaration& declaration, size_t line) {
  DeclaredRow row{std::move(request), declaration.passes, declaration.reason, line, declaration.requested};
  for (const Operand& operand : row.request.operands) {
    if (!names(row.passes, operand.name)) fail(line, fmt::format("no passes are declared for {}", operand.name));
  }
  for (const Passes& passes : row.passes) {
    if (row.request.find(passes.operand) == nullptr)
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

// Reads a table line by line.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<DeclaredRow> rows() && {
    while (!text_.empty()) {
      const std::string_view line = next_line();
      if (without_spaces(line).empty()) continue;
      if (line.starts_with("expression ")) {
        define(line);
      } else if (line.front() != ' ') {
        declaration_ = parse_declaration(line, number_);
      } else {
        add(without_spaces(line));
      }
    }
    return std::move(rows_);
  }

 private:
  std::string_view next_line() {
    const size_t end = std::min(text_.find('\n'), text_.size());
    const std::string_view line = text_.substr(0, std::min(end, text_.find('#')));
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++number_;
    return line;
  }

  void define(std::string_view heading) {
    std::string definition(heading);
    while (!text_.empty() && !definition.ends_with("end expression")) definition.append("\n").append(next_line());
    (void)parse_requests(definition, expressions_);
  }

  void add(std::string_view request) {
    if (declaration_.passes.empty()) fail(number_, "a request before any passes");
    const bool only = request.starts_with("only ");
    const std::string as_is(only ? without_spaces(request.substr(5)) : request);
    const std::string halved = in_f16(as_is);
    rows_.push_back(declared(Request::parse(as_is, expressions_), declaration_, number_));
    if (!only && halved != as_is)
      rows_.push_back(declared(Request::parse(halved, expressions_), declaration_, number_));
  }

  std::string_view text_;
  size_t number_ = 0;
  Expressions expressions_;
  Declaration declaration_;
  std::vector<DeclaredRow> rows_;
};

double bytes_of(const DeclaredRow& row, const Passes& passes) {
  const TensorSpec& spec = row.request.at(passes.operand);
  return passes.count * static_cast<double>(spec.elements() * (passes.as_f32 ? 4 : size_of(spec.dtype)));
}

}  // namespace

std::vector<DeclaredRow> parse_passes(std::string_view text) {
  return Reader(text).rows();
}

std::vector<DeclaredRow> quick_rows(const std::vector<DeclaredRow>& rows) {
  std::vector<DeclaredRow> quick;
  std::string reason;
  std::set<std::string> seen;  // operations under this declaration
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].reason != reason) seen.clear();
    reason = rows[i].reason;
    if (!seen.insert(rows[i].request.operation).second) continue;
    const bool has_twin = i + 1 < rows.size() && rows[i + 1].line == rows[i].line;
    quick.push_back(rows[has_twin && quick.size() % 2 == 1 ? i + 1 : i]);
  }
  return quick;
}

std::vector<std::string> operations_without(const std::vector<DeclaredRow>& rows) {
  std::vector<std::string> names;
  for (const Operation* operation : operations()) {
    const auto is_of = [&](const DeclaredRow& row) { return row.request.operation == operation->name(); };
    if (std::none_of(rows.begin(), rows.end(), is_of)) names.emplace_back(operation->name());
  }
  return names;
}

double declared_bytes(const DeclaredRow& row) {
  return std::accumulate(row.passes.begin(), row.passes.end(), 0.0,
                         [&](double sum, const Passes& passes) { return sum + bytes_of(row, passes); });
}

double declared_partials(const DeclaredRow& row) {
  return std::accumulate(row.passes.begin(), row.passes.end(), 0.0, [&](double sum, const Passes& passes) {
    return sum + (passes.as_f32 ? bytes_of(row, passes) : 0);
  });
}

double traffic_limit(const Request& request) {
  return request.operation.find("_backward") == std::string::npos ? 1.1 : 1.25;
}

std::string fault_of(const DeclaredRow& row, double unique_bytes, double requested_bytes) {
  const double ratio = unique_bytes / declared_bytes(row);
  const double limit = traffic_limit(row.request);
  if (ratio > limit) return fmt::format("{:.3f} of {:.2f}: {}", ratio, limit, row.request.key());
  if (ratio < least_traffic) return fmt::format("{:.3f}, more is declared than is moved: {}", ratio, row.request.key());
  const double requested = requested_bytes / unique_bytes;
  if (requested > row.requested)
    return fmt::format("requested {:.2f} of {:.2f}: {}", requested, row.requested, row.request.key());
  return {};
}

}  // namespace kiln::bench
