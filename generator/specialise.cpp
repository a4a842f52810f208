#include "kiln/generator/specialise.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kiln/base/error.h"
#include "text.h"

namespace kiln {
namespace {

constexpr std::string_view always_first = "lib/types.cuh";
constexpr std::string_view include_prefix = "#include \"lib/";

// The file that a line includes, if it is an include of a library piece.
std::string included_file(std::string_view line) {
  if (!line.starts_with(include_prefix)) return {};
  line.remove_prefix(std::string_view("#include \"").size());
  return std::string(line.substr(0, line.find('"')));
}

// Inlines a file and, where they are included, the files it needs; each once.
class Inliner {
 public:
  explicit Inliner(const SourceLibrary& library) : library_(library) {}

  void append(const std::string& path) {
    if (std::find(open_.begin(), open_.end(), path) != open_.end()) {
      throw Error(ErrorCode::internal, fmt::format("template {} includes itself", path));
    }
    if (std::find(done_.begin(), done_.end(), path) != done_.end()) return;
    done_.push_back(path);
    open_.push_back(path);
    std::string_view rest = library_.text(path);
    text_ += fmt::format("// ---- {}\n", path);
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      append_line(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    open_.pop_back();
  }

  void append_text(std::string_view text) { text_ += text; }

  const std::string& text() const { return text_; }
  const std::vector<std::string>& files() const { return done_; }

 private:
  void append_line(std::string_view line) {
    if (line == "#pragma once") return;
    if (const std::string file = included_file(line); !file.empty()) {
      append(file);
      return;
    }
    text_ += line;
    text_ += '\n';
  }

  const SourceLibrary& library_;
  std::vector<std::string> open_;
  std::vector<std::string> done_;
  std::string text_;
};

std::string comment(std::string_view title) {
  std::string result;
  for (std::string_view line : text::split(title, '\n')) result += fmt::format("// {}\n", line);
  return result;
}

bool fits_int(int64_t value) {
  return value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max();
}

}  // namespace

const std::string& SourceLibrary::text(const std::string& path) const {
  const auto found = files_.find(path);
  if (found == files_.end()) throw Error(ErrorCode::internal, fmt::format("there is no template file {}", path));
  return found->second;
}

Prelude& Prelude::constant(std::string_view name, int64_t value) {
  text_ += fits_int(value) ? fmt::format("constexpr int {} = {};\n", name, value)
                           : fmt::format("constexpr long long {} = {}LL;\n", name, value);
  return *this;
}

Prelude& Prelude::flag(std::string_view name, bool value) {
  text_ += fmt::format("constexpr bool {} = {};\n", name, value);
  return *this;
}

Prelude& Prelude::array(std::string_view name, const std::vector<int64_t>& values) {
  text_ += fmt::format("constexpr long long {}[] = {{{}}};\n", name, text::join(values, ", "));
  return *this;
}

Prelude& Prelude::type(std::string_view name, DType dtype) {
  text_ += fmt::format("using {} = {};\n", name, to_string(dtype));
  return *this;
}

Prelude& Prelude::index_type(std::string_view name, bool wide) {
  text_ += fmt::format("using {} = {};\n", name, wide ? "long long" : "int");
  return *this;
}

std::string specialise(const SourceLibrary& library, const std::string& template_path, const Prelude& prelude,
                       std::string_view title) {
  Inliner inliner(library);
  inliner.append_text(comment(title));
  inliner.append(std::string(always_first));
  inliner.append_text("// ---- parameters\n");
  inliner.append_text(prelude.text());
  inliner.append(template_path);
  return inliner.text();
}

std::vector<std::string> closure(const SourceLibrary& library, const std::string& template_path) {
  Inliner inliner(library);
  inliner.append(template_path);
  inliner.append(std::string(always_first));
  return inliner.files();
}

}  // namespace kiln
