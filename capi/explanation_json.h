// An Explanation as JSON.
#pragma once

#include <string>

#include "kiln/context.h"

namespace kiln::capi {

/// The object that kiln_context_explain() describes; what is not finite is null.
std::string json_of(const Explanation& why);

}  // namespace kiln::capi
