/* Elements of a tensor that stand where indices say. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/gather.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_gather_options {
  uint32_t size;
  float alpha;                   /* Default 1. */
  float beta;                    /* Default 0: y is not read. */
  int32_t dynamic_batch;         /* One kernel for every batch of a power-of-two bucket; not along axis 0. */
  int64_t axis;                  /* The dimension of x that indices count along; negative: from the end. Default 0. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_gather_options;

static inline kiln_gather_options kiln_gather_options_default(void) {
  kiln_gather_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * x[..., indices[..., i, ...], ...] + beta * y), where i and the index stand in the place
 * of the dimension `axis`, on `stream` and returns: numpy.take_along_axis, ONNX's Gather and GatherElements.
 *
 * x, y: any dtypes and strides; equal dtypes without alpha, beta and user code are copied bit by bit. indices: i32. All
 * three have one rank, 1 to 5. Along `axis` indices have y's extent, and x may have any but 0; along every other
 * dimension x and indices have y's extent or 1, which repeats. A negative index counts from the end. What an index
 * outside x names is 0, and no memory is read for it. y shares no element with x and indices. `options` may be NULL.
 * Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_gather(kiln_context* context, const kiln_tensor* x, const kiln_tensor* indices,
                                 const kiln_tensor* y, const kiln_gather_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
