// Order between streams.
#pragma once

#include "kiln/context.h"
#include "kiln/plan.h"

namespace kiln {

/// Makes all work that is enqueued on `later` from now on wait for the work that was enqueued on `earlier` before.
/// Returns without waiting; does nothing if both are one stream. While `earlier` is captured into a CUDA graph, `later`
/// joins the capture. Throws Error(driver_error) for a stream that does not exist, and if only `later` is captured.
void order(Context& context, Stream earlier, Stream later);

}  // namespace kiln
