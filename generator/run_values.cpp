#include "kiln/generator/run_values.h"

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

}  // namespace

RunValues check_values(const Request& request) {
  RunValues values;
  values.alpha = request.blend.alpha == Scale::zero ? 0.0f : 1.0f;
  values.beta = request.blend.beta == Scale::zero ? 0.0f : 1.0f;
  const Operation& definition = operation(request.operation);
  for (size_t i = 0; i < definition.scalars().size(); ++i) values.operation_scalars[i] = definition.scalars()[i].usual;
  for (size_t i = 0; i < definition.integers().size(); ++i)
    values.operation_integers[i] = definition.integers()[i].usual;
  return values;
}

RunValues usual_values(const Request& request) {
  RunValues values = check_values(request);
  const std::optional<ActivationMode> mode = activation_of(request);
  const ActivationNumbers usual = mode ? usual_numbers(*mode) : ActivationNumbers{};
  const std::vector<ScalarDefinition>& scalars = operation(request.operation).scalars();
  for (size_t i = 0; i < scalars.size(); ++i) {
    if (scalars[i].name == "slope") values.operation_scalars[i] = usual.slope;
    if (scalars[i].name == "offset") values.operation_scalars[i] = usual.offset;
    if (scalars[i].name == "low") values.operation_scalars[i] = usual.low;
    if (scalars[i].name == "high") values.operation_scalars[i] = usual.high;
    if (scalars[i].name == "p") values.operation_scalars[i] = 0.5f;
  }
  return values;
}

}  // namespace kiln
