/* Dropout, forward and backward. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/dropout.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_dropout_options {
  uint32_t size;
  float p;               /* The share of elements that become 0; 0 to 1. Default 0.5. */
  uint64_t seed;         /* The key of the random sequence. Default 0. */
  uint64_t offset;       /* Which call of that seed it is: give each call of a training another one. Default 0. */
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: the result is not read. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_dropout_options;

static inline kiln_dropout_options kiln_dropout_options_default(void) {
  kiln_dropout_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.p = 0.5f;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * dropout(x) + beta * y) on `stream` and returns: x / (1 - p) where an element is kept,
 * else 0.
 *
 * x, y: equal extents of 1 to 5 dimensions, any strides. Which elements are kept depends on p, seed, offset and the
 * number of the element in logical order alone, by Philox 4x32-10: the same on every device and in every layout. y may
 * be x itself; otherwise they must share no element. Deterministic. `options` may be NULL. Errors, first call and
 * threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_dropout_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                          const kiln_dropout_options* options, kiln_stream stream);

/* Enqueues dx = epilogue(alpha * dropout(dy) + beta * dx): the gradient of kiln_dropout_forward() without user code. It
 * is the same function of dy: equal p, seed and offset make the same mask again. Messages call dy x, and dx y.
 * Everything else as kiln_dropout_forward(). */
KILN_API kiln_status kiln_dropout_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* dx,
                                           const kiln_dropout_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
