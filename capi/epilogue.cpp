#include "kiln/epilogue.h"

#include <span>
#include <vector>

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
  destroy(epilogue);
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

kiln_status kiln_epilogue_expression(kiln_epilogue* epilogue, const char* text, const kiln_named_tensor* tensors,
                                     size_t tensor_count, const kiln_named_scalar* scalars, size_t scalar_count) {
  return guarded([&] {
    const char* const function = "kiln_epilogue_expression";
    require(epilogue, function, "epilogue");
    require(text, function, "text");
    if (tensor_count > 0) require(tensors, function, "tensors");
    if (scalar_count > 0) require(scalars, function, "scalars");
    std::vector<kiln::NamedTensor> named_tensors;
    for (const kiln_named_tensor& named : std::span(tensors, tensor_count)) {
      require(named.name, function, "the name of a tensor");
      named_tensors.push_back({named.name, tensor_of(named.tensor, function, named.name)});
    }
    std::vector<kiln::NamedScalar> named_scalars;
    for (const kiln_named_scalar& named : std::span(scalars, scalar_count)) {
      require(named.name, function, "the name of a scalar");
      require_zero(named.reserved, function, "reserved");
      named_scalars.push_back({named.name, named.value});
    }
    const kiln::Epilogue code = kiln::expression(text, named_tensors, named_scalars);
    const bool empty = epilogue->stages.count() == 0 && !epilogue->stages.code();
    epilogue->stages = empty ? code : epilogue->stages + code;  // + refuses code beside anything else
  });
}

kiln_status kiln_epilogue_clip(kiln_epilogue* epilogue, float lo, float hi) {
  return guarded([&] {
    require(epilogue, "kiln_epilogue_clip", "epilogue");
    epilogue->stages = epilogue->stages + kiln::clip(lo, hi);
  });
}
