/* Softmax and log-softmax, forward and backward. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/softmax.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_softmax_mode;
enum {
  KILN_SOFTMAX_ACCURATE = 0, /* exp(x - max) / sum(exp(x - max)) */
  KILN_SOFTMAX_LOG = 1       /* x - max - log(sum(exp(x - max))) */
};

typedef struct kiln_softmax_options {
  uint32_t size;
  kiln_softmax_mode mode;        /* Default KILN_SOFTMAX_ACCURATE. */
  int64_t axis;                  /* Default 1. Negative counts from the end. */
  float alpha;                   /* Default 1. */
  float beta;                    /* Default 0: y is not read. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
  int32_t dynamic_batch;         /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
} kiln_softmax_options;

static inline kiln_softmax_options kiln_softmax_options_default(void) {
  kiln_softmax_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.axis = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * softmax(x) + beta * y) along an axis on `stream` and returns; or log-softmax.
 *
 * x, y: equal extents of 1 to 5 dimensions, any strides. y may be x itself; otherwise they must not overlap. `options`
 * may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_softmax_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                          const kiln_softmax_options* options, kiln_stream stream);

/* Enqueues dx = epilogue(alpha * (gradient of y = softmax(x), or of log-softmax, given dy) + beta * dx) on `stream` and
 * returns: y (dy - sum(y dy)), or dy - exp(y) sum(dy), with sums over the axis.
 *
 * y: what kiln_softmax_forward() gave with the same axis and mode. y, dy, dx: equal extents of 1 to 5 dimensions, any
 * strides. dx may be dy or y itself; otherwise they must not overlap. Deterministic. `options` may be NULL. Errors,
 * first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_softmax_backward(kiln_context* context, const kiln_tensor* y, const kiln_tensor* dy,
                                           const kiln_tensor* dx, const kiln_softmax_options* options,
                                           kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
