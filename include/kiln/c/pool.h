/* Pooling and max unpooling, forward and backward. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/pool.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_pool_mode;
enum {
  KILN_POOL_MAX = 0,       /* Largest element of the window inside x; NaN if any is NaN; -inf if none is inside. */
  KILN_POOL_AVG = 1,       /* Sum over the elements inside x, divided by their number; 0 if none is inside. */
  KILN_POOL_AVG_PADDED = 2 /* The same sum, divided by the number of window elements inside the padded x. */
};

typedef struct kiln_pool_options {
  uint32_t size;
  kiln_pool_mode mode;                 /* Default KILN_POOL_MAX. */
  int64_t window[KILN_MAX_SPATIAL];    /* Default 0: all of x (global pooling). */
  int64_t pad_begin[KILN_MAX_SPATIAL]; /* Default 0. */
  int64_t pad_end[KILN_MAX_SPATIAL];   /* Default 0. */
  int64_t stride[KILN_MAX_SPATIAL];    /* Default 1. */
  int64_t dilation[KILN_MAX_SPATIAL];  /* Default 1. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: y is not read. */
  const kiln_epilogue* epilogue;       /* User code only. Default NULL: none. */
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
} kiln_pool_options;

static inline kiln_pool_options kiln_pool_options_default(void) {
  kiln_pool_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  for (int i = 0; i < KILN_MAX_SPATIAL; ++i) options.stride[i] = options.dilation[i] = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * pool(x) + beta * y) on `stream` and returns without waiting.
 *
 * x: N,C,H,W   y: N,C,P,Q, whose extents may be those of the floor formula or of ceil mode. Any strides. y must not
 * overlap x. `options` may be NULL: global max pooling. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_pool_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                       const kiln_pool_options* options, kiln_stream stream);

/* Enqueues dx = epilogue(alpha * (gradient of y = pool(x), given dy) + beta * dx) on `stream` and returns without
 * waiting.
 *
 * dy: N,C,P,Q   x, dx: N,C,H,W. Of equal maxima the first in its window gets the gradient, of NaNs the last; windows
 * that overlap add up. Only KILN_POOL_MAX reads x: averages may be given NULL. Deterministic. Any strides. dx must not
 * overlap dy or x. `options` as for the forward pass, but the epilogue is of dx. Errors, first call and threads as for
 * kiln_conv_forward(). */
KILN_API kiln_status kiln_pool_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                        const kiln_tensor* dx, const kiln_pool_options* options, kiln_stream stream);

/* As kiln_pool_forward() of KILN_POOL_MAX, and writes where each maximum stands. indices: as y, KILN_I32: the position
 * in its channel of x, counted in logical order (h*W + w); of equal maxima the first, of NaNs the last; -1 for a window
 * without an element inside x. With a prologue of user code, maxima are those of its results. y and indices must not
 * overlap x or one another. */
KILN_API kiln_status kiln_pool_forward_with_indices(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                                    const kiln_tensor* indices, const kiln_pool_options* options,
                                                    kiln_stream stream);

/* As kiln_pool_backward() of KILN_POOL_MAX, from the indices that kiln_pool_forward_with_indices() wrote instead of
 * from x. An index that is no position of its window passes nothing on. */
KILN_API kiln_status kiln_pool_backward_from_indices(kiln_context* context, const kiln_tensor* dy,
                                                     const kiln_tensor* indices, const kiln_tensor* dx,
                                                     const kiln_pool_options* options, kiln_stream stream);

/* Enqueues y = alpha * (x at the positions that `indices` name, 0 elsewhere) + beta * y: max unpooling. x, indices:
 * N,C,P,Q   y: N,C,H,W; `options` of the pooling that it undoes. Positions that several windows name hold the sum. */
KILN_API kiln_status kiln_unpool_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* indices,
                                         const kiln_tensor* y, const kiln_pool_options* options, kiln_stream stream);

/* Enqueues dx = epilogue(alpha * (dy at the positions that `indices` name) + beta * dx): the gradient of
 * kiln_unpool_forward() by its x, with its `options`. dy: N,C,H,W   indices, dx: N,C,P,Q. Windows that name one
 * position each get its element; an index that is no position of its window gives 0. */
KILN_API kiln_status kiln_unpool_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* indices,
                                          const kiln_tensor* dx, const kiln_pool_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
