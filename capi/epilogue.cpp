#include "kiln/epilogue.h"

#include "boundary.h"
#include "handles.h"
#include "tensor.h"

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_epilogue_create(kiln_epilogue** epilogue) {
  return guarded([&] {
    require(epilogue, "kiln_epilogue_create", "epilogue");
    *epilogue = new kiln_epilogue;
  });
}

void kiln_epilogue_destroy(kiln_epilogue* epilogue) {
  delete epilogue;
}

kiln_status kiln_epilogue_bias(kiln_epilogue* epilogue, const kiln_tensor* values) {
  return guarded([&] {
    require(epilogue, "kiln_epilogue_bias", "epilogue");
    epilogue->stages = epilogue->stages + kiln::bias(tensor_of(values, "kiln_epilogue_bias", "values"));
  });
}

kiln_status kiln_epilogue_add(kiln_epilogue* epilogue, const kiln_tensor* residual) {
  return guarded([&] {
    require(epilogue, "kiln_epilogue_add", "epilogue");
    epilogue->stages = epilogue->stages + kiln::add(tensor_of(residual, "kiln_epilogue_add", "residual"));
  });
}

kiln_status kiln_epilogue_relu(kiln_epilogue* epilogue) {
  return guarded([&] {
    require(epilogue, "kiln_epilogue_relu", "epilogue");
    epilogue->stages = epilogue->stages + kiln::relu;
  });
}

kiln_status kiln_epilogue_clip(kiln_epilogue* epilogue, float lo, float hi) {
  return guarded([&] {
    require(epilogue, "kiln_epilogue_clip", "epilogue");
    epilogue->stages = epilogue->stages + kiln::clip(lo, hi);
  });
}
