/* Images as columns of windows, and back: PyTorch's unfold and fold. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/im2col.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_im2col_options {
  uint32_t size;
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
  int64_t window[KILN_MAX_SPATIAL];    /* Default 0: all of the image. */
  int64_t pad_begin[KILN_MAX_SPATIAL]; /* Default 0. */
  int64_t pad_end[KILN_MAX_SPATIAL];   /* Default 0. */
  int64_t stride[KILN_MAX_SPATIAL];    /* Default 1. */
  int64_t dilation[KILN_MAX_SPATIAL];  /* Default 1. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: y is not read. */
  const kiln_epilogue* epilogue;       /* User code only. Default NULL: none. */
} kiln_im2col_options;

static inline kiln_im2col_options kiln_im2col_options_default(void) {
  kiln_im2col_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  for (int i = 0; i < KILN_MAX_SPATIAL; ++i) options.stride[i] = options.dilation[i] = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * im2col(x) + beta * y) on `stream` and returns: channel (c*R + r)*S + s of y at (p,q) is
 * the element of channel c of x at tap (r,s) of the window of (p,q), and 0 where that is outside x.
 *
 * x: N,C,H,W   y: N,C*R*S,P,Q, with the extents of kiln_conv_forward()'s outputs; 1-D and 3-D likewise. Any strides;
 * floating-point numbers or integers. y must not overlap x. `options` may be NULL: all of the image. Errors, first call
 * and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_im2col(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                 const kiln_im2col_options* options, kiln_stream stream);

/* Enqueues y = epilogue(alpha * col2im(x) + beta * y) on `stream` and returns: the gradient of kiln_im2col() by its x.
 * Each element of y is the sum of the elements of x that kiln_im2col() copies from it, and 0 where there is none.
 *
 * x: N,C*R*S,P,Q   y: N,C,H,W; 1-D and 3-D likewise. Any strides; floating-point numbers. Deterministic. y must not
 * overlap x. `options` may be NULL: all of the image. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_col2im(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                 const kiln_im2col_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
