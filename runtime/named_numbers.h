// NamedNumbers: numbers of a call by their names, at the places that its operation has for them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/run_values.h"
#include "kiln/plan.h"

namespace kiln {

/// Throws Error(invalid_argument): `operation` has no `kind` of that name, but `known`.
[[noreturn]] void refuse_name(const Operation& operation, std::string_view kind, std::string_view name,
                              std::span<const std::string_view> known);
/// Throws Error(invalid_argument): the name is given twice.
[[noreturn]] void refuse_second(const Operation& operation, std::string_view kind, std::string_view name);

/// Puts `value` into that of `places` at which `definitions` have `name`. Throws as above; `others`: further names that
/// the message lists.
template <class Places, class Definitions, class Value>
void put_named(const Operation& operation, std::string_view kind, std::string_view name, const Value& value,
               const Definitions& definitions, Places& places, std::span<const std::string_view> others = {}) {
  for (size_t i = 0; i < definitions.size(); ++i) {
    if (definitions[i].name != name) continue;
    if (places[i]) refuse_second(operation, kind, name);
    places[i] = value;
    return;
  }
  std::vector<std::string_view> known(others.begin(), others.end());
  for (const auto& definition : definitions) known.emplace_back(definition.name);
  refuse_name(operation, kind, name, known);
}

/// Named numbers as Plan::values() and CallOptions take them.
class NamedNumbers {
 public:
  /// Throws Error(invalid_argument) for a name that the operation does not have, and one that is given twice.
  NamedNumbers(const Operation& operation, std::span<const NamedScalar> numbers,
               std::span<const NamedInteger> integers);

  float alpha() const { return alpha_.value_or(1); }
  float beta() const { return beta_.value_or(0); }
  /// Operation::scalars()[i], if it was given.
  std::optional<float> scalar(size_t i) const { return scalars_[i]; }

  /// `usual` with those that were given in the places of others.
  RunValues over(RunValues usual) const;

 private:
  std::optional<float> alpha_, beta_, clip_lo_, clip_hi_;
  std::array<std::optional<float>, max_operation_scalars> scalars_{};
  std::array<std::optional<uint64_t>, max_operation_integers> integers_{};
};

}  // namespace kiln
