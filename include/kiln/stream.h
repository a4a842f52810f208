// Order between streams.
#pragma once

#include "kiln/context.h"
#include "kiln/plan.h"

namespace kiln {

/// Work that is enqueued on `later` from now on starts when `earlier` has done what it was given before. Returns
/// without waiting; does nothing where both are one stream. While `earlier` is captured into a graph, `later` joins the
/// capture. Throws Error(driver_error) for a stream that there is not, and where only `later` is captured.
void order(Context& context, Stream earlier, Stream later);

}  // namespace kiln
