#include "kiln/generator/run_values.h"

#include <string_view>

#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/activation.h"

namespace kiln {
namespace {

// The mode of the activation that the operation is, or ends with; nothing if it has none.
std::optional<ActivationMode> activation_of(const Request& request) {
  for (const std::string_view attribute : {"activation", "mode"}) {
    for (const Attribute& each : request.attributes) {
      const std::string* const word = each.name == attribute ? std::get_if<std::string>(&each.value) : nullptr;
      if (word == nullptr) continue;
      for (const ActivationMode mode : activation_modes()) {
        if (*word == to_string(mode)) return mode;
      }
    }
  }
  return std::nullopt;
}

// alpha and beta as the classes fix them, 1 where any will do.
RunValues with_scales(const Blend& blend) {
  RunValues values;
  values.alpha = blend.alpha == Scale::zero ? 0.0f : 1.0f;
  values.beta = blend.beta == Scale::zero ? 0.0f : 1.0f;
  return values;
}

}  // namespace

RunValues check_values(const Request& request) {
  RunValues values = with_scales(request.blend);
  const Operation& definition = operation(request.operation);
  for (size_t i = 0; i < definition.scalars().size(); ++i)
    values.operation_scalars[i] = definition.scalars()[i].in_checks;
  for (size_t i = 0; i < definition.integers().size(); ++i)
    values.operation_integers[i] = definition.integers()[i].in_checks;
  return values;
}

RunValues usual_values(const Request& request) {
  RunValues values = with_scales(request.blend);
  const std::optional<ActivationMode> mode = activation_of(request);
  const ActivationNumbers usual = mode ? usual_numbers(*mode) : ActivationNumbers{};
  const auto fallback_of = [&](const ScalarDefinition& scalar) {
    if (scalar.fallback) return *scalar.fallback;
    if (scalar.name == "slope") return usual.slope;
    if (scalar.name == "offset") return usual.offset;
    return scalar.name == "low" ? usual.low : usual.high;
  };
  const std::vector<ScalarDefinition>& scalars = operation(request.operation).scalars();
  for (size_t i = 0; i < scalars.size(); ++i) values.operation_scalars[i] = fallback_of(scalars[i]);
  return values;
}

}  // namespace kiln
