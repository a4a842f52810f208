// Values that checks and `kiln run` give a call.
#pragma once

#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"

namespace kiln {

/// Values that a call of `request` may have: scales as its classes fix them, 1 where any will do; the operation's own
/// numbers and integers where fills of small integers meet every branch (ScalarDefinition::in_checks). An application
/// gets usual_values() instead.
RunValues check_values(const Request& request);

}  // namespace kiln
