#include "code_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <utility>

#include "kiln/base/error.h"

namespace kiln::bench {
namespace {

[[noreturn]] void fail(size_t line, const std::string& what) {
  throw Error(ErrorCode::parse_error, fmt::format("line {} of the table of limits: {}", line, what));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() && number > 0;
}

Arch parse_arch(std::string_view word, size_t line) {
  for (const Arch& arch : Arch::all()) {
    if (word == arch.name().substr(3)) return arch;
  }
  fail(line, fmt::format("there are no kernels for the architecture '{}'", word));
}

// Reads `NAME<=NUMBER`.
template <class Number>
Number parse_limit(std::string_view word, std::string_view name, size_t line) {
  Number number = 0;
  const std::string prefix = fmt::format("{}<=", name);
  if (!word.starts_with(prefix) || !read_number(word.substr(prefix.size()), number))
    fail(line, fmt::format("'{}' where {}NUMBER is expected", word, prefix));
  return number;
}

// Reads lines one by one.
class TableReader {
 public:
  void read(std::string_view text, size_t line) {
    if (words_of(text).empty()) return;
    if (text.front() != ' ') {
      end(line);
      row_ = CodeLimit();
      row_.request = Request::parse(std::string(text));
      has_request_ = true;
    } else if (text.find(':') == std::string_view::npos) {
      end(line);
      begin_variant(words_of(text), line);
    } else {
      add_limits(text, line);
    }
  }

  // Ends the variant that was read last.
  void end(size_t line) {
    if (has_variant_ && !has_limits_) fail(line, fmt::format("{} before this has no limits", row_.algorithm));
    has_variant_ = has_limits_ = false;
  }

  std::vector<CodeLimit> take() { return std::move(rows_); }

 private:
  void begin_variant(const std::vector<std::string_view>& words, size_t line) {
    if (!has_request_) fail(line, "a variant before any request");
    if (words.size() != 2) fail(line, "a variant is an algorithm and a configuration, or 'default'");
    row_.algorithm = words[0];
    row_.config = words[1];
    has_variant_ = true;
  }

  void add_limits(std::string_view text, size_t line) {
    if (!has_variant_) fail(line, "limits before any variant");
    const size_t colon = text.find(':');
    const std::vector<std::string_view> archs = words_of(text.substr(0, colon));
    const std::vector<std::string_view> limits = words_of(text.substr(colon + 1));
    if (archs.empty() || limits.size() < 2 || limits.size() > 3) {
      fail(line,
           "limits are architectures, a colon, registers<=NUMBER and instructions<=NUMBER, and spills<=NUMBER if there "
           "may be any");
    }
    row_.registers = parse_limit<int>(limits[0], "registers", line);
    row_.per_product = parse_limit<double>(limits[1], "instructions", line);
    row_.spills = limits.size() == 3 ? parse_limit<uint32_t>(limits[2], "spills", line) : 0;
    row_.line = line;
    for (const std::string_view word : archs) {
      row_.arch = parse_arch(word, line);
      rows_.push_back(row_);
    }
    has_limits_ = true;
  }

  bool has_request_ = false, has_variant_ = false, has_limits_ = false;
  CodeLimit row_;
  std::vector<CodeLimit> rows_;
};

}  // namespace

std::vector<CodeLimit> parse_code_limits(std::string_view text) {
  TableReader reader;
  size_t line = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    reader.read(content.substr(0, content.find('#')), ++line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  reader.end(line);
  return reader.take();
}

std::string fault_of(const CodeLimit& limit, const KernelCode& code) {
  std::vector<std::string> faults;
  const double per_product = code.main_loop.per_product();
  if (code.local_instructions > limit.spills) {
    faults.push_back(fmt::format("{} loads and stores of spills, {} permitted", code.local_instructions, limit.spills));
  }
  if (code.registers > limit.registers)
    faults.push_back(fmt::format("{} registers, {} permitted", code.registers, limit.registers));
  if (per_product == 0) faults.emplace_back("no loop has a tensor instruction");
  if (per_product > limit.per_product) {
    faults.push_back(
        fmt::format("{:.3f} instructions for each tensor instruction, {} permitted", per_product, limit.per_product));
  }
  if (faults.empty()) return {};
  return fmt::format("line {}: {}: {} {} on {} for {}", limit.line, fmt::join(faults, "; "), limit.algorithm,
                     limit.config, limit.arch.name(), limit.request.key());
}

}  // namespace kiln::bench
