/* Local convolution and its gradients. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/local_conv.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_local_conv_options {
  uint32_t size;
  int32_t mirrored;                    /* As in kiln_conv_options. */
  int64_t pad_begin[KILN_MAX_SPATIAL]; /* Default 0. */
  int64_t pad_end[KILN_MAX_SPATIAL];   /* Default 0. */
  int64_t stride[KILN_MAX_SPATIAL];    /* Default 1. */
  int64_t dilation[KILN_MAX_SPATIAL];  /* Default 1. */
  int64_t groups;                      /* Default 1. */
  int64_t grid[KILN_MAX_SPATIAL];      /* Regions along each axis. Default 0: as many as there are outputs. */
  const kiln_epilogue* epilogue;       /* Default NULL: none. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: y is not read. */
  int32_t tf32;                        /* f32 products may be rounded to tf32. */
  int32_t fast;                        /* Products, and sums of 32, may be in the storage type. */
  int32_t deterministic;               /* Equal inputs must give bitwise equal outputs on one device. */
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
} kiln_local_conv_options;

static inline kiln_local_conv_options kiln_local_conv_options_default(void) {
  kiln_local_conv_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  for (int i = 0; i < KILN_MAX_SPATIAL; ++i) options.stride[i] = options.dilation[i] = 1;
  options.groups = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * (local convolution of x with w) + beta * y): y[n,k,p,q] = sum over c, r, s of x[n,c,p *
 * stride - pad + r * dilation, ...] * w[region(p,q) * K + k,c,r,s].
 *
 * x: N,C,H,W   w: (regions*K),C/groups,R,S or regions,K,C/groups,R,S   y: N,K,P,Q as kiln_conv_forward() gives them;
 * 1-D and 3-D likewise. Along an axis of P outputs with a grid of GP, output p belongs to region floor(p * GP / P);
 * regions are counted with the last axis fastest. Any strides; dtypes may differ. Bitwise reproducible. y must share no
 * element with x, w or the bias, which has K elements. `options` may be NULL: a locally connected layer. Errors, first
 * call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_local_conv_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w,
                                             const kiln_tensor* y, const kiln_local_conv_options* options,
                                             kiln_stream stream);

typedef struct kiln_local_conv_backward_options {
  uint32_t size;
  int32_t mirrored;                    /* As in kiln_local_conv_options, of the convolution whose gradient it is. */
  int64_t pad_begin[KILN_MAX_SPATIAL]; /* Default 0. */
  int64_t pad_end[KILN_MAX_SPATIAL];   /* Default 0. */
  int64_t stride[KILN_MAX_SPATIAL];    /* Default 1. */
  int64_t dilation[KILN_MAX_SPATIAL];  /* Default 1. */
  int64_t groups;                      /* Default 1. */
  int64_t grid[KILN_MAX_SPATIAL];      /* Default 0: as many regions as there are outputs. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: the gradient is not read. 1 accumulates. */
  int32_t tf32;                        /* f32 products may be rounded to tf32. */
  int32_t fast;                        /* Products, and sums of 32, may be in the storage type. */
  int32_t deterministic;               /* Equal inputs must give bitwise equal outputs on one device. */
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
  const kiln_epilogue* epilogue;       /* Default NULL: none. Of dx stages or user code; of dw user code alone. */
} kiln_local_conv_backward_options;

static inline kiln_local_conv_backward_options kiln_local_conv_backward_options_default(void) {
  kiln_local_conv_backward_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  for (int i = 0; i < KILN_MAX_SPATIAL; ++i) options.stride[i] = options.dilation[i] = 1;
  options.groups = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues dx = epilogue(alpha * (gradient of the local convolution with respect to x) + beta * dx).
 *
 * dy: N,K,P,Q   w: as that of kiln_local_conv_forward()   dx: N,C,H,W. dx must share no element with dy, w or the bias.
 * Bitwise reproducible. `options` may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_local_conv_backward_data(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* w,
                                                   const kiln_tensor* dx,
                                                   const kiln_local_conv_backward_options* options, kiln_stream stream);

/* Enqueues dw = epilogue(alpha * (gradient of the local convolution with respect to its filters) + beta * dw).
 *
 * x: N,C,H,W   dy: N,K,P,Q   dw: as w of kiln_local_conv_forward(). dw must share no element with x or dy. Bitwise
 * reproducible. An empty batch gives epilogue(beta * dw). `options` may be NULL. Errors, first call and threads as for
 * kiln_conv_forward(). */
KILN_API kiln_status kiln_local_conv_backward_filter(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                                     const kiln_tensor* dw,
                                                     const kiln_local_conv_backward_options* options,
                                                     kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
