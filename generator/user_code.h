// How user code gets into a kernel: constants that describe what it reads, and its text where the template says so.
#pragma once

#include "kiln/generator/request.h"
#include "kiln/generator/specialise.h"

namespace kiln {

/// Adds what lib/user_code.cuh needs to `prelude`: which parts there are, the description of the tensors, the places.
/// Throws missing_user_text() if the request lacks it.
void add_user_code(Prelude& prelude, const Request& request);

}  // namespace kiln
