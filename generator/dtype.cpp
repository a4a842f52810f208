#include "kiln/generator/dtype.h"

#include <vector>

namespace kiln {

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DTypeTraits& row : dtype_rows) {
    if (text == row.name) return row.dtype;
  }
  return std::nullopt;
}

std::string to_string(DTypes dtypes) {
  std::vector<std::string_view> names;
  for (const DType dtype : all_dtypes) {
    if (dtypes.holds(dtype)) names.push_back(to_string(dtype));
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  return text;
}

}  // namespace kiln
