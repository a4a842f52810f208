#include "kiln/stream.h"

#include "boundary.h"
#include "handles.h"

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_order(kiln_context* context, kiln_stream earlier, kiln_stream later) {
  return guarded([&] {
    require(context, "kiln_order", "context");
    kiln::order(*context->context, earlier, later);
  });
}
