// From a template and constants to one self-contained source.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/generator/dtype.h"
#include "kiln/generator/program.h"

namespace kiln {

/// The texts of the templates and of the pieces they include, by path below templates/ ("conv/simple.cu",
/// "lib/types.cuh", "conv/simple/simple.cpp"). Descriptors are in it too: they are part of an algorithm's digest.
class SourceLibrary {
 public:
  /// A line `#include "TARGET"` and its number, from 1.
  struct Include {
    std::string target;
    size_t line;
  };

  explicit SourceLibrary(std::map<std::string, std::string> files);

  /// Throws Error(internal) if there is no such file.
  const std::string& text(const std::string& path) const;
  /// The includes of a file, in order. Throws Error(internal) if there is no such file.
  const std::vector<Include>& includes(const std::string& path) const;
  const std::map<std::string, std::string>& files() const { return files_; }

 private:
  std::map<std::string, std::string> files_;
  std::map<std::string, std::vector<Include>> includes_;  // read once: digests of all algorithms ask for them
};

/// Types that hold element offsets in the sources of a program.
enum class Offsets {
  fitting,     ///< Each of 32 bits where its values fit, else of 64.
  of_64_bits,  ///< For tests: the code of tensors that are larger than a test can have.
};

/// The constants that specialise a template, in order. Those that an open kernel takes when it is loaded are its
/// extents: constants like the others, unless the prelude is opened.
class Prelude {
 public:
  /// `constexpr int NAME = value;`, or `long long` where int is too small.
  Prelude& constant(std::string_view name, int64_t value) { return declare(name, value); }
  /// `constexpr bool NAME = value;`
  Prelude& flag(std::string_view name, bool value) { return declare(name, value); }
  /// `constexpr long long NAME[] = {...};`; {0} for no value, because in C++ an array has an element all the same.
  Prelude& array(std::string_view name, const std::vector<int64_t>& values) { return declare(name, Array::of(values)); }
  /// `__constant__ int NAME[] = {...};`, or `long long` where int is too small: the index need not be a constant. At
  /// least one value.
  Prelude& table(std::string_view name, const std::vector<int64_t>& values) {
    return declare(name, Table{values, values.size()});
  }
  /// constant(), or `__constant__ OpenExtent NAME;` where the prelude is opened, `long long` where int is too small.
  /// Always constant() unless `may_be_open`.
  Prelude& extent(std::string_view name, int64_t value, bool may_be_open = true) {
    return declare(name, value, may_be_open);
  }
  /// array(), or `__constant__ long long NAME[COUNT];` where the prelude is opened.
  Prelude& extents(std::string_view name, const std::vector<int64_t>& values) {
    return declare(name, Array::of(values), true);
  }
  /// table(), or `__constant__ long long NAME[most];` where the prelude is opened, which then takes at most `most`
  /// values.
  Prelude& extent_table(std::string_view name, const std::vector<int64_t>& values, size_t most) {
    return declare(name, Table{values, most}, true);
  }
  /// Leaves the extents open.
  Prelude& open() {
    is_open_ = true;
    return *this;
  }

  /// `using NAME = f16;` with the names of lib/types.cuh.
  Prelude& type(std::string_view name, DType dtype);
  /// `constexpr long long NAME[] = {...};` with a type's place in dtype_rows, as array().
  Prelude& types(std::string_view name, const std::vector<DType>& dtypes);
  /// `using NAME = int;`, or `long long` if `wide`: the type that holds element offsets.
  Prelude& index_type(std::string_view name, bool wide) { return declare(name, IndexType{wide}); }
  /// Makes each index_type() so far, also those of classes, as wide as `offsets` asks for.
  Prelude& widen(Offsets offsets);

  /// Prelude of a template whose blocks are of several classes: CLASSES, their number, and the constants that have one
  /// value in all `classes`. The others stand where the template says `#include "per_class/..."`; see specialise().
  /// Where extents are `left_open` and the classes several, each has all of its own. Throws Error(internal) unless all
  /// declare the same names in the same order.
  static Prelude of_classes(const std::vector<Prelude>& classes, bool left_open = false);

  /// Puts `text`, a user's code, into the template where it says `#include "PLACE"`. Lines of the kernel that follow
  /// keep their numbers (`#line`).
  Prelude& place(std::string place, std::string text);

  /// A line for each constant.
  std::string text() const { return text_of(declarations_); }
  /// Whether type() or types() named this one.
  bool names(DType dtype) const { return types_.holds(dtype); }
  /// Extents that are left open, in order; none unless the prelude is opened.
  std::vector<Extent> open_extents() const;
  /// Every constant(), extent() and flag() so far, in order.
  std::vector<std::pair<std::string, int64_t>> constants() const;
  const std::map<std::string, std::string, std::less<>>& places() const { return places_; }
  /// The constants of each class that are its own, as text() writes them.
  std::vector<std::string> class_texts() const;

 private:
  struct Array {
    std::vector<int64_t> values;
    static Array of(const std::vector<int64_t>& values) { return {values.empty() ? std::vector<int64_t>{0} : values}; }
    bool operator==(const Array&) const = default;
  };
  struct Table {
    std::vector<int64_t> values;
    size_t most;  // values where it is left open
    bool operator==(const Table&) const = default;
  };
  struct IndexType {
    bool wide;
    bool operator==(const IndexType&) const = default;
  };
  using Value = std::variant<int64_t, bool, Array, Table, DType, IndexType>;
  struct Declaration {
    std::string name;
    Value value;
    bool is_extent;  // a number, an Array or a Table
    bool operator==(const Declaration&) const = default;
  };
  using Declarations = std::vector<Declaration>;

  Prelude& declare(std::string_view name, Value value, bool is_extent = false);
  static void widen(Declarations& declarations);
  static std::string line(std::string_view name, int64_t value);
  static std::string line(std::string_view name, bool value);
  static std::string line(std::string_view name, const Array& array);
  static std::string line(std::string_view name, const Table& table);
  static std::string line(std::string_view name, DType dtype);
  static std::string line(std::string_view name, IndexType index);
  static std::optional<Extent> extent_of(const Declaration& declaration);
  static void append_extents(std::vector<Extent>& extents, const Declarations& declarations, std::string_view scope);
  std::string text_of(const Declarations& declarations) const;

  Declarations declarations_;
  std::vector<Declarations> own_of_classes_;
  std::map<std::string, std::string, std::less<>> places_;
  DTypes types_;
  bool is_open_ = false;
};

/// The self-contained source: a comment with `title`, lib/types.cuh, the pieces of further types if the prelude names
/// one, lib/open_extent.cuh if it leaves extents open, the prelude, then the template with every `#include "lib/..."`
/// replaced by that file, once, every `#include "user/..."` by what the prelude places there, and
/// `#include "types/by_code"` by the alias that gives each type its code.
/// `#include "per_class/lib/..."` is replaced by that file and what it includes that does not stand above it, once for
/// each class of the prelude, with the lines that are the class' own, in a namespace class_0, class_1 and so on; and by
/// a macro FOR_EACH_CLASS(DO), which is DO(class_0) DO(class_1) and so on. Throws Error(internal) for a missing file or
/// place or a cycle.
///
/// A user template ("user/NAME.cu") includes pieces alone; Error(invalid_argument) names the line of NAME.cu that
/// includes what there is not. Its source gives every line the file, NAME.cu or "lib/...", and number it was written
/// under (`#line`).
std::string specialise(const SourceLibrary& library, const std::string& template_path, const Prelude& prelude,
                       std::string_view title);

/// The template and every file that it includes, the template first, and the pieces of further types and open extents
/// that the library has. An algorithm's digest covers them. Throws as specialise() does.
std::vector<std::string> closure(const SourceLibrary& library, const std::string& template_path);

}  // namespace kiln
