// Words of the modes of reduce and of its gradient.
#pragma once

#include <string>
#include <vector>

#include "kiln/generator/operations/reduce.h"

namespace kiln {

ReduceMode reduce_mode_of(const Request& request);
std::vector<std::string> reduce_mode_words();

}  // namespace kiln
