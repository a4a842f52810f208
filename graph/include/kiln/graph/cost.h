// Cost of a request, for passes that choose between graphs that compute the same.
#pragma once

#include <functional>

#include "kiln/generator/request.h"

namespace kiln::graph {

/// Seconds that a request takes; infinite where nothing serves it.
using Cost = std::function<double(const Request&)>;

}  // namespace kiln::graph
