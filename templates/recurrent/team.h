// Recurrent layers and their gradients by teams of blocks: lib/recurrent_team.cuh.
#pragma once

#include <string>

#include "recurrent/recurrence.h"

namespace kiln::descriptor {

/// The algorithm of recurrent/NAME.cu.
Algorithm recurrent_teams(const std::string& name, const std::string& operation);

}  // namespace kiln::descriptor
