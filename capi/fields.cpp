#include "fields.h"

#include "boundary.h"
#include "generated/options.h"

namespace kiln::capi {

Activation activation_of(const kiln_activation_options* given, const char* function) {
  if (given == nullptr) return {};
  const kiln_activation_options known = read(given, kiln_activation_options_default(KILN_ACTIVATION_RELU), function);
  const ActivationOptions options = options_of(known, function);
  return {options.mode, options.slope, options.offset, options.low, options.high};
}

}  // namespace kiln::capi
