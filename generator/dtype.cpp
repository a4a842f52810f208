#include "kiln/generator/dtype.h"

namespace kiln {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    if (text == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

int size_of(DType dtype) {
  return dtype == DType::f32 ? 4 : 2;
}

}  // namespace kiln
