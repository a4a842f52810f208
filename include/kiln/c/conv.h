/* Convolution and its gradients. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/conv.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_conv_options {
  uint32_t size;
  int32_t mirrored;                    /* 1: true convolution. 0: cross-correlation, as frameworks do. */
  int64_t pad_begin[KILN_MAX_SPATIAL]; /* Top, left. Default 0. */
  int64_t pad_end[KILN_MAX_SPATIAL];   /* Bottom, right. Default 0. */
  int64_t stride[KILN_MAX_SPATIAL];    /* Default 1. */
  int64_t dilation[KILN_MAX_SPATIAL];  /* Default 1. */
  int64_t groups;                      /* Default 1. */
  const kiln_epilogue* epilogue;       /* Default NULL: none. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: y is not read. */
  int32_t tf32;                        /* f32 products may be rounded to tf32. */
  int32_t fast;                        /* Products, and sums of 32, in the storage type; those of f32 by Winograd. */
  int32_t deterministic;               /* Equal inputs must give bitwise equal outputs on one device. */
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
} kiln_conv_options;

static inline kiln_conv_options kiln_conv_options_default(void) {
  kiln_conv_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  for (int i = 0; i < KILN_MAX_SPATIAL; ++i) options.stride[i] = options.dilation[i] = 1;
  options.groups = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * conv(x, w) + beta * y) on `stream` and returns without waiting.
 *
 * x: N,C,H,W   w: K,C/groups,R,S   y: N,K,P,Q (1-D: N,C,W and so on; 3-D: N,C,D,H,W) with P = floor((H + pads -
 * dilation*(R-1) - 1) / stride) + 1. Any strides; dtypes may differ between operands; sums are in f32, or in i32 of
 * 8-bit integers. y must share no element with x, w or the bias; regions of one tensor may interleave. `options` may be
 * NULL.
 *
 * The first call for a shape compiles (see kiln_context_prepare()); it never tunes. Later calls find their plan in a
 * fraction of a microsecond. Workspace is lent to one call at a time. While `stream` is captured into a graph, calls
 * that need workspace and first calls of a shape are refused (KILN_UNSUPPORTED), and the capture stays intact: make the
 * plan before, and run it with a workspace of your own there. An empty batch is a no-op.
 *
 * KILN_INVALID_ARGUMENT: tensors that do not fit each other, memory that overlaps, an address that is null, misaligned
 * or of host memory that the device does not reach, a tensor that reaches beyond the end of its allocation of device
 * memory, options out of range. KILN_UNSUPPORTED: nothing serves the request. KILN_COMPILE_FAILED: user code, or every
 * kernel that serves it, is refused by NVRTC. KILN_MISSING_LIBRARY: it is in no bundle, and there is no NVRTC.
 * KILN_OUT_OF_MEMORY, KILN_DRIVER_ERROR. */
KILN_API kiln_status kiln_conv_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w,
                                       const kiln_tensor* y, const kiln_conv_options* options, kiln_stream stream);

typedef struct kiln_conv_backward_options {
  uint32_t size;
  int32_t mirrored;                    /* As in kiln_conv_options, of the convolution whose gradient it is. */
  int64_t pad_begin[KILN_MAX_SPATIAL]; /* Default 0. */
  int64_t pad_end[KILN_MAX_SPATIAL];   /* Default 0. */
  int64_t stride[KILN_MAX_SPATIAL];    /* Default 1. */
  int64_t dilation[KILN_MAX_SPATIAL];  /* Default 1. */
  int64_t groups;                      /* Default 1. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: the gradient is not read. 1 accumulates. */
  int32_t tf32;                        /* f32 products may be rounded to tf32. */
  int32_t fast;                        /* Products, and sums of 32, may be in the storage type. */
  int32_t deterministic;               /* Equal inputs must give bitwise equal outputs on one device. */
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
  const kiln_epilogue* epilogue;       /* Default NULL: none. Of dx stages or user code; of dw user code alone. */
} kiln_conv_backward_options;

static inline kiln_conv_backward_options kiln_conv_backward_options_default(void) {
  kiln_conv_backward_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  for (int i = 0; i < KILN_MAX_SPATIAL; ++i) options.stride[i] = options.dilation[i] = 1;
  options.groups = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues dx = epilogue(alpha * (gradient of conv(x, w) with respect to x) + beta * dx): transposed convolution of dy.
 *
 * dy: N,K,P,Q   w: K,C/groups,R,S   dx: N,C,H,W with H = (P-1) * stride + dilation * (R-1) + 1 - pads + output padding,
 * where the output padding is at least 0 and less than the stride. dx must share no element with dy, w or the bias.
 * `options` may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_conv_backward_data(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* w,
                                             const kiln_tensor* dx, const kiln_conv_backward_options* options,
                                             kiln_stream stream);

/* Enqueues dw = epilogue(alpha * (gradient of conv(x, w) with respect to w) + beta * dw).
 *
 * x: N,C,H,W   dy: N,K,P,Q as kiln_conv_forward() gives them   dw: K,C/groups,R,S. dw must share no element with x or
 * dy. Bitwise reproducible. An empty batch gives epilogue(beta * dw). `options` may be NULL. Errors, first call and
 * threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_conv_backward_filter(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                               const kiln_tensor* dw, const kiln_conv_backward_options* options,
                                               kiln_stream stream);

typedef struct kiln_conv_backward_bias_options {
  uint32_t size;
  int32_t dynamic_batch;         /* One kernel for every batch of a power-of-two bucket. */
  float alpha;                   /* Default 1. */
  float beta;                    /* Default 0: db is not read. */
  const kiln_epilogue* epilogue; /* Default NULL: none. User code alone. */
} kiln_conv_backward_bias_options;

static inline kiln_conv_backward_bias_options kiln_conv_backward_bias_options_default(void) {
  kiln_conv_backward_bias_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues db = epilogue(alpha * (sum of dy over all but its channels) + beta * db).
 *
 * dy: N,K and up to three spatial dimensions   db: K. They must share no element. Bitwise reproducible. An empty batch
 * gives epilogue(beta * db). `options` may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_conv_backward_bias(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* db,
                                             const kiln_conv_backward_bias_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
