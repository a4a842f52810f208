// The flags that say how a model is read: --dtype, --layout, --batch, --shape, --no-fuse,
// --arithmetic.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"
#include "kiln/model.h"

namespace kiln::cli {

struct ModelFlags {
  std::string dtype{};  ///< Empty: the model's own.
  std::string layout = "auto";
  std::string batch{};                ///< A number, or `?` or `?N` for a dynamic batch.
  std::vector<std::string> shapes{};  ///< As parse_shapes() takes them.
  bool no_fuse = false;
  std::string arithmetic{};  ///< List of "tf32", "fast", "deterministic" and "batch_invariant", with commas between.

  void add_to(Command command);
  /// Whether any of them is given.
  bool any() const;
  /// All but the shapes. Throws Error(invalid_argument) for a --batch or --arithmetic that is none.
  ModelOptions options() const;
};

}  // namespace kiln::cli
