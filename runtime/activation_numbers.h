// The numbers of an activation as those of a call.
#pragma once

#include "kiln/activation.h"
#include "operation_call.h"

namespace kiln {

/// Those that `activation`, an Activation or ActivationOptions, has, and the usual ones for the others, as the
/// operation's numbers from `first` on.
template <class WithNumbers>
void set_numbers(const WithNumbers& activation, size_t first, RunValues& values) {
  const ActivationNumbers usual = usual_numbers(activation.mode);
  values.scalars[first] = activation.slope.value_or(usual.slope);
  values.scalars[first + 1] = activation.offset.value_or(usual.offset);
  values.scalars[first + 2] = activation.low.value_or(usual.low);
  values.scalars[first + 3] = activation.high.value_or(usual.high);
}

}  // namespace kiln
