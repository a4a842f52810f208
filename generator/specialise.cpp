#include "kiln/generator/specialise.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "kiln/base/error.h"
#include "text_parsing.h"

namespace kiln {
namespace {

constexpr std::string_view always_first = "lib/types.cuh";
constexpr std::string_view of_open_extents = "lib/open_extent.cuh";
constexpr std::string_view include_prefix = "#include \"";
constexpr std::string_view piece_prefix = "lib/";
constexpr std::string_view per_class_prefix = "per_class/";
constexpr std::string_view types_by_code = "types/by_code";
constexpr std::string_view user_prefix = "user/";  // of places in Kiln's templates, and of the files of user templates

// The file or place that a line includes; empty for other lines.
std::string_view included(std::string_view line) {
  if (!line.starts_with(include_prefix)) return {};
  line.remove_prefix(include_prefix.size());
  return line.substr(0, line.find('"'));
}

std::vector<SourceLibrary::Include> includes_of(std::string_view text) {
  std::vector<SourceLibrary::Include> includes;
  size_t number = 0;
  for (const std::string_view line : text::split(text, '\n')) {
    ++number;
    if (const std::string_view target = included(line); !target.empty()) {
      includes.push_back({std::string(target), number});
    }
  }
  return includes;
}

// Every source has these types.
bool is_basic(DType dtype) {
  return traits(dtype).piece.empty();
}

// The pieces of the types that are not basic.
std::vector<std::string> further_pieces() {
  std::vector<std::string> pieces;
  for (const DTypeTraits& row : dtype_rows) {
    if (!is_basic(row.dtype)) pieces.emplace_back(row.piece);
  }
  return pieces;
}

bool has_further_types(const Prelude& prelude) {
  return std::any_of(all_dtypes.begin(), all_dtypes.end(),
                     [&](DType dtype) { return !is_basic(dtype) && prelude.names(dtype); });
}

// The line that gives types their codes: those that the source has.
std::string line_of_types(const Prelude& prelude) {
  std::string names;
  for (const DType dtype : all_dtypes) {
    if (is_basic(dtype) || has_further_types(prelude)) names += fmt::format(", {}", to_string(dtype));
  }
  return fmt::format("using UserStorage = typename NthType<CODE{}>::type;\n", names);
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Throws if a file that a user wrote includes a piece that does not exist.
void require_piece(const SourceLibrary& library, const std::string& path, const SourceLibrary::Include& include) {
  const auto& [target, line] = include;
  if (!path.starts_with(user_prefix)) return;
  const bool is_kilns =
      target.starts_with(piece_prefix) || target.starts_with(per_class_prefix) || target.starts_with(user_prefix);
  if (!is_kilns || (target.starts_with(piece_prefix) && library.files().contains(target))) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: line {}: there is no \"{}\" to include", file_name(path), line, target),
              "a user template includes Kiln's pieces, \"lib/...\": docs/adding-a-kernel.md says what there is");
}

Error includes_itself(const std::string& path) {
  return {ErrorCode::internal, fmt::format("template {} includes itself", path)};
}

// Inlines a file and, where they are included, the files it needs; each once. In a user template every line
// keeps the file and number that its author knows (`#line`), and mistakes name them.
class Inliner {
 public:
  Inliner(const SourceLibrary& library, const std::string& template_path, const Prelude& prelude)
      : library_(library),
        name_(file_name(template_path)),
        is_users_(template_path.starts_with(user_prefix)),
        prelude_(prelude) {}

  void append(const std::string& path) {
    if (std::any_of(open_.begin(), open_.end(), [&](const Open& open) { return open.path == path; })) {
      throw includes_itself(path);
    }
    if (std::find(done_.begin(), done_.end(), path) != done_.end()) return;
    done_.push_back(path);
    open_.push_back({path, 0});
    std::string_view rest = library_.text(path);
    text_ += fmt::format("// ---- {}\n", path);
    number_next_line();
    while (!rest.empty()) {
      if (!rest.starts_with('#')) {
        append_plain_lines(rest);
        continue;
      }
      const size_t end = rest.find('\n');
      ++open_.back().line;
      append_directive(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    open_.pop_back();
  }

  void append_parameters() {
    text_ += "// ---- parameters\n";
    if (is_users_) text_ += "#line 1 \"parameters\"\n";
    text_ += prelude_.text();
  }

  void append_text(std::string_view text) { text_ += text; }

  const std::string& text() const { return text_; }

 private:
  // A file that is being inlined, and its line.
  struct Open {
    std::string path;
    size_t line;
  };

  // Moves the lines up to the next that begins with "#" out of `rest`.
  void append_plain_lines(std::string_view& rest) {
    const size_t end = rest.find("\n#");
    const std::string_view lines = rest.substr(0, end == std::string_view::npos ? end : end + 1);
    open_.back().line += static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
    text_ += lines;
    if (!lines.ends_with('\n')) text_ += '\n';
    rest.remove_prefix(lines.size());
  }

  void append_directive(std::string_view line) {
    const std::string_view target = included(line);
    require_piece(library_, open_.back().path, {std::string(target), open_.back().line});
    if (line == "#pragma once") {
      number_next_line();
    } else if (target.starts_with(piece_prefix)) {
      append(std::string(target));
      number_next_line();
    } else if (target.starts_with(per_class_prefix)) {
      append_classes(std::string(target.substr(per_class_prefix.size())));
    } else if (target.starts_with(user_prefix)) {
      append_place(target);
    } else if (target == types_by_code) {
      text_ += line_of_types(prelude_);
    } else {
      text_ += line;
      text_ += '\n';
    }
  }

  void number_next_line() {
    if (!is_users_) return;
    const auto& [path, line] = open_.back();
    text_ += fmt::format("#line {} \"{}\"\n", line + 1, path.starts_with(user_prefix) ? name_ : path);
  }

  void append_classes(const std::string& path) {
    const std::vector<std::string> constants = prelude_.class_texts();
    if (constants.empty()) {
      throw Error(ErrorCode::internal, fmt::format("template {} has classes, its prelude none", name_));
    }
    const std::vector<std::string> above = done_;
    std::string every;
    for (size_t i = 0; i < constants.size(); ++i) {
      done_ = above;
      text_ += fmt::format("namespace class_{} {{\nconstexpr int CLASS = {};\n{}", i, i, constants[i]);
      append(path);
      text_ += fmt::format("}}  // namespace class_{}\n", i);
      every += fmt::format(" DO(class_{})", i);
    }
    text_ += fmt::format("#define FOR_EACH_CLASS(DO){}\n", every);
  }

  void append_place(std::string_view place) {
    const auto found = prelude_.places().find(place);
    if (found == prelude_.places().end()) {
      throw Error(ErrorCode::internal, fmt::format("template {} has a place {} for nothing", name_, place));
    }
    text_ += found->second;
    if (is_users_) return number_next_line();
    if (found->second.find("#line") == std::string::npos) return;
    const auto lines = std::count(text_.begin(), text_.end(), '\n');
    text_ += fmt::format("#line {} \"{}\"\n", lines + 2, name_);
  }

  const SourceLibrary& library_;
  std::string name_;  // of the template, in messages
  bool is_users_;
  const Prelude& prelude_;
  std::vector<Open> open_;
  std::vector<std::string> done_;
  std::string text_;
};

// The files that an Inliner reads, in its order.
class Closure {
 public:
  explicit Closure(const SourceLibrary& library) : library_(library) {}

  void add(const std::string& path) {
    if (std::ranges::find(open_, path) != open_.end()) throw includes_itself(path);
    if (std::ranges::find(files_, path) != files_.end()) return;
    files_.push_back(path);
    open_.push_back(path);
    for (const SourceLibrary::Include& include : library_.includes(path)) {
      require_piece(library_, path, include);
      const std::string& target = include.target;
      if (target.starts_with(piece_prefix)) add(target);
      if (target.starts_with(per_class_prefix)) add(target.substr(per_class_prefix.size()));
    }
    open_.pop_back();
  }

  const std::vector<std::string>& files() const { return files_; }

 private:
  const SourceLibrary& library_;
  std::vector<std::string> open_;  // the files that are being read, each included by the one before it
  std::vector<std::string> files_;
};

std::string comment(std::string_view title) {
  std::string result;
  for (std::string_view line : text::split(title, '\n')) result += fmt::format("// {}\n", line);
  return result;
}

// The fields of an OpenExtent (lib/open_extent.cuh) beside its value d: n / d is the upper word of 2n * multiplier,
// shifted right, for each n below 2^31. With 2^shift the smallest power of two that is not below d, multiplier is
// ceil(2^(31 + shift) / d). Nothing is divided by extents below 1.
struct Reciprocal {
  int32_t multiplier = 0;  // the bits of an unsigned one
  int shift = 0;

  explicit Reciprocal(int64_t divisor) {
    if (divisor < 1) return;
    const auto d = static_cast<uint64_t>(divisor);
    shift = std::bit_width(d - 1);
    multiplier = static_cast<int32_t>(((uint64_t{1} << (31 + shift)) + d - 1) / d);
  }
};

bool fits_int(int64_t value) {
  return value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max();
}

}  // namespace

SourceLibrary::SourceLibrary(std::map<std::string, std::string> files) : files_(std::move(files)) {
  for (const auto& [path, text] : files_) includes_.emplace(path, includes_of(text));
}

const std::string& SourceLibrary::text(const std::string& path) const {
  const auto found = files_.find(path);
  if (found == files_.end()) throw Error(ErrorCode::internal, fmt::format("there is no template file {}", path));
  return found->second;
}

const std::vector<SourceLibrary::Include>& SourceLibrary::includes(const std::string& path) const {
  (void)text(path);
  return includes_.find(path)->second;
}

std::string Prelude::line(std::string_view name, int64_t value) {
  return fits_int(value) ? fmt::format("constexpr int {} = {};\n", name, value)
                         : fmt::format("constexpr long long {} = {}LL;\n", name, value);
}

std::string Prelude::line(std::string_view name, bool value) {
  return fmt::format("constexpr bool {} = {};\n", name, value);
}

std::string Prelude::line(std::string_view name, const Array& array) {
  return fmt::format("constexpr long long {}[] = {{{}}};\n", name, text::join(array.values, ", "));
}

std::string Prelude::line(std::string_view name, const Table& table) {
  const bool is_int = std::ranges::all_of(table.values, fits_int);
  return fmt::format("__constant__ {} {}[] = {{{}}};\n", is_int ? "int" : "long long", name,
                     text::join(table.values, ", "));
}

std::string Prelude::line(std::string_view name, DType dtype) {
  return fmt::format("using {} = {};\n", name, to_string(dtype));
}

std::string Prelude::line(std::string_view name, IndexType index) {
  return fmt::format("using {} = {};\n", name, index.wide ? "long long" : "int");
}

// The extent that a declaration leaves open where the prelude is opened; nothing for what it fixes.
std::optional<Extent> Prelude::extent_of(const Declaration& declaration) {
  if (!declaration.is_extent) return std::nullopt;
  if (const auto* const array = std::get_if<Array>(&declaration.value))
    return Extent{declaration.name, array->values, 8};
  if (const auto* const table = std::get_if<Table>(&declaration.value)) {
    if (table->values.size() > table->most) {
      throw Error(ErrorCode::internal, fmt::format("{} has more values than an open kernel takes", declaration.name));
    }
    std::vector<int64_t> values = table->values;
    values.resize(table->most);
    return Extent{declaration.name, std::move(values), 8};
  }
  const int64_t value = std::get<int64_t>(declaration.value);
  if (!fits_int(value)) return Extent{declaration.name, {value}, 8};
  const Reciprocal reciprocal(value);
  return Extent{declaration.name, {value, reciprocal.multiplier, reciprocal.shift}, 4};
}

std::vector<Extent> Prelude::open_extents() const {
  std::vector<Extent> extents;
  if (!is_open_) return extents;
  append_extents(extents, declarations_, "");
  for (size_t i = 0; i < own_of_classes_.size(); ++i)
    append_extents(extents, own_of_classes_[i], fmt::format("class_{}", i));
  return extents;
}

// Under the names that variables of a namespace `scope` have for the linker (Itanium C++ ABI, "Mangling").
void Prelude::append_extents(std::vector<Extent>& extents, const Declarations& declarations, std::string_view scope) {
  for (const Declaration& declaration : declarations) {
    std::optional<Extent> extent = extent_of(declaration);
    if (!extent) continue;
    const std::string& name = declaration.name;
    if (!scope.empty()) extent->name = fmt::format("_ZN{}{}{}{}E", scope.size(), scope, name.size(), name);
    extents.push_back(std::move(*extent));
  }
}

std::string Prelude::text_of(const Declarations& declarations) const {
  std::string text;
  for (const Declaration& declaration : declarations) {
    const std::string& name = declaration.name;
    if (const auto extent = is_open_ ? extent_of(declaration) : std::nullopt) {
      const bool is_array = !std::holds_alternative<int64_t>(declaration.value);
      text += fmt::format("__constant__ {} {}{};\n", extent->bytes == 4 ? "OpenExtent" : "long long", name,
                          is_array ? fmt::format("[{}]", extent->values.size()) : "");
    } else {
      text += std::visit([&](const auto& held) { return line(name, held); }, declaration.value);
    }
  }
  return text;
}

Prelude& Prelude::declare(std::string_view name, Value value, bool is_extent) {
  declarations_.push_back({std::string(name), std::move(value), is_extent});
  return *this;
}

Prelude& Prelude::type(std::string_view name, DType dtype) {
  types_ = types_ | DTypes{dtype};
  return declare(name, dtype);
}

Prelude& Prelude::types(std::string_view name, const std::vector<DType>& dtypes) {
  std::vector<int64_t> codes;
  for (const DType dtype : dtypes) {
    codes.push_back(static_cast<int64_t>(dtype));
    types_ = types_ | DTypes{dtype};
  }
  return array(name, codes);
}

Prelude& Prelude::widen(Offsets offsets) {
  if (offsets == Offsets::fitting) return *this;
  widen(declarations_);
  for (Declarations& own : own_of_classes_) widen(own);
  return *this;
}

void Prelude::widen(Declarations& declarations) {
  for (Declaration& declaration : declarations) {
    if (auto* const index = std::get_if<IndexType>(&declaration.value)) index->wide = true;
  }
}

std::vector<std::pair<std::string, int64_t>> Prelude::constants() const {
  std::vector<std::pair<std::string, int64_t>> numbers;
  for (const auto& [name, value, is_extent] : declarations_) {
    if (const auto* const number = std::get_if<int64_t>(&value)) numbers.emplace_back(name, *number);
    if (const auto* const flag = std::get_if<bool>(&value)) numbers.emplace_back(name, *flag ? 1 : 0);
  }
  return numbers;
}

std::vector<std::string> Prelude::class_texts() const {
  std::vector<std::string> texts;
  for (const Declarations& own : own_of_classes_) texts.push_back(text_of(own));
  return texts;
}

Prelude Prelude::of_classes(const std::vector<Prelude>& classes, bool left_open) {
  Prelude result;
  result.constant("CLASSES", static_cast<int64_t>(classes.size()));
  result.own_of_classes_.resize(classes.size());
  const Declarations& first = classes.front().declarations_;
  for (const Prelude& one : classes) {
    const bool has_names_of_first =
        std::ranges::equal(one.declarations_, first, {}, &Declaration::name, &Declaration::name);
    if (!has_names_of_first) throw Error(ErrorCode::internal, "classes of one template declare different constants");
    result.types_ = result.types_ | one.types_;
  }
  for (size_t i = 0; i < first.size(); ++i) {
    const bool is_own_extent = left_open && classes.size() > 1 && extent_of(first[i]);
    const bool is_common = !is_own_extent && std::ranges::all_of(classes, [&](const Prelude& one) {
      return one.declarations_[i] == first[i];
    });
    if (is_common) result.declarations_.push_back(first[i]);
    for (size_t j = 0; !is_common && j < classes.size(); ++j) {
      result.own_of_classes_[j].push_back(classes[j].declarations_[i]);
    }
  }
  return result;
}

Prelude& Prelude::place(std::string place, std::string text) {
  places_.insert_or_assign(std::move(place), std::move(text));
  return *this;
}

std::string specialise(const SourceLibrary& library, const std::string& template_path, const Prelude& prelude,
                       std::string_view title) {
  Inliner inliner(library, template_path, prelude);
  inliner.append_text(comment(title));
  inliner.append(std::string(always_first));
  if (has_further_types(prelude)) {
    for (const std::string& piece : further_pieces()) inliner.append(piece);
  }
  if (!prelude.open_extents().empty()) inliner.append(std::string(of_open_extents));
  inliner.append_parameters();
  inliner.append(template_path);
  return inliner.text();
}

std::vector<std::string> closure(const SourceLibrary& library, const std::string& template_path) {
  Closure closure(library);
  closure.add(template_path);
  closure.add(std::string(always_first));
  std::vector<std::string> pieces = further_pieces();
  pieces.emplace_back(of_open_extents);
  for (const std::string& piece : pieces) {
    if (library.files().contains(piece)) closure.add(piece);
  }
  return closure.files();
}

}  // namespace kiln
