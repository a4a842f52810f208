#include "operation_call.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {
namespace {

struct Range {
  uintptr_t begin, end;
};

Range range_of(const Tensor& tensor) {
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data());
  if (tensor.empty()) return {begin, begin};
  int64_t last = 0;
  for (int i = 0; i < tensor.rank(); ++i) last += (tensor.extent(i) - 1) * tensor.stride(i);
  return {begin, begin + static_cast<uintptr_t>((last + 1) * size_of(tensor.dtype()))};
}

}  // namespace

void refuse_overlap(std::string_view operation, const Tensor& y, std::string_view name, const Tensor& other) {
  const Range a = range_of(y), b = range_of(other);
  if (a.begin >= b.end || b.begin >= a.end) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: the memory of y and {} overlaps", operation, name),
              "write the result elsewhere");
}

}  // namespace kiln
