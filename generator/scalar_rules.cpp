#include "kiln/generator/scalar_rules.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {

void refuse_scalar(const Request& request, const ScalarRule& rule, const RunValues& values) {
  const std::vector<ScalarDefinition>& scalars = operation(request.operation).scalars();
  const auto said = [&](size_t i) { return fmt::format("{} is {}", scalars[i].name, values.operation_scalars[i]); };
  const std::string floor = rule.floor ? fmt::format(" and {}", said(*rule.floor)) : "";
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}{}", request.operation, said(rule.scalar), floor),
              std::string(rule.hint));
}

}  // namespace kiln
