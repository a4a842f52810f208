// Properties of every schedule.
#pragma once

#include "kiln/graph/schedule.h"

namespace kiln::fuzz {

/// Operands lie inside of their buffers, and requests come back from their keys: check() of each.
void check_schedule(const graph::Schedule& schedule);

}  // namespace kiln::fuzz
