#include "operations/operations.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {

const std::vector<const Operation*>& operations() {
  static const std::vector<const Operation*> all = {&conv_forward_operation(), &pool_forward_operation(),
                                                    &softmax_forward_operation()};
  return all;
}

const Operation* find_operation(std::string_view name) {
  for (const Operation* candidate : operations()) {
    if (candidate->name() == name) return candidate;
  }
  return nullptr;
}

const Operation& operation(std::string_view name) {
  if (const Operation* found = find_operation(name)) return *found;
  std::string known;
  for (const Operation* candidate : operations()) known += fmt::format(" {}", candidate->name());
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown operation '{}'", name), "known are:" + known);
}

}  // namespace kiln
