#include "named_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"

namespace kiln {

void refuse_name(const Operation& operation, std::string_view kind, std::string_view name,
                 std::span<const std::string_view> known) {
  throw Error(
      ErrorCode::invalid_argument, fmt::format("{} has no {} '{}'", operation.name(), kind, name),
      did_you_mean(name, known, known.empty() ? "it takes none" : fmt::format("it takes {}", fmt::join(known, ", "))));
}

void refuse_second(const Operation& operation, std::string_view kind, std::string_view name) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} {} is given twice", operation.name(), kind, name),
              "give it once");
}

NamedNumbers::NamedNumbers(const Operation& operation, std::span<const NamedScalar> numbers,
                           std::span<const NamedInteger> integers) {
  constexpr std::array<std::string_view, 4> common = {"alpha", "beta", "clip_lo", "clip_hi"};
  const std::array<std::optional<float>*, 4> places = {&alpha_, &beta_, &clip_lo_, &clip_hi_};
  for (const NamedScalar& number : numbers) {
    const auto found = std::ranges::find(common, number.name);
    if (found == common.end()) {
      put_named(operation, "number", number.name, number.value, operation.scalars(), scalars_, common);
      continue;
    }
    std::optional<float>& place = *places[static_cast<size_t>(found - common.begin())];
    if (place) refuse_second(operation, "number", number.name);
    place = number.value;
  }
  for (const NamedInteger& integer : integers) {
    put_named(operation, "integer", integer.name, integer.value, operation.integers(), integers_);
  }
}

RunValues NamedNumbers::over(RunValues usual) const {
  RunValues values = usual;
  values.alpha = alpha_.value_or(usual.alpha);
  values.beta = beta_.value_or(usual.beta);
  values.clip_lo = clip_lo_.value_or(usual.clip_lo);
  values.clip_hi = clip_hi_.value_or(usual.clip_hi);
  for (size_t i = 0; i < scalars_.size(); ++i) {
    values.operation_scalars[i] = scalars_[i].value_or(usual.operation_scalars[i]);
  }
  for (size_t i = 0; i < integers_.size(); ++i) {
    values.operation_integers[i] = integers_[i].value_or(usual.operation_integers[i]);
  }
  return values;
}

}  // namespace kiln
