/* Matrix products and fully connected layers with their gradients. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/gemm.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_gemm_options {
  uint32_t size;
  int32_t dynamic_batch;         /* One kernel for every M of a power-of-two bucket; only without batch dimensions. */
  const kiln_epilogue* epilogue; /* Default NULL: none. */
  float alpha;                   /* Default 1. */
  float beta;                    /* Default 0: c is not read. */
  int32_t tf32;                  /* f32 products may be rounded to tf32. */
  int32_t fast;                  /* Products, and sums of 32, may be in the storage type. */
  int32_t deterministic;         /* Equal inputs must give bitwise equal outputs on one device. */
  int32_t reserved;
} kiln_gemm_options;

static inline kiln_gemm_options kiln_gemm_options_default(void) {
  kiln_gemm_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* *result = the view of the same memory with the last two dimensions exchanged: what kiln_gemm() takes for a transposed
 * matrix. `result` may be `matrix`. KILN_INVALID_ARGUMENT: a tensor of one dimension, or that is none. */
KILN_API kiln_status kiln_tensor_transposed(const kiln_tensor* matrix, kiln_tensor* result);

/* Enqueues c = epilogue(alpha * a b + beta * c) on `stream` and returns without waiting.
 *
 * a: ...,M,K   b: ...,K,N   c: ...,M,N, each of 2 to 5 dimensions, equally many. A batch dimension in front of the
 * matrices may be 1 in a or in b: that matrix is used again for every product. A bias has N elements, a residual the
 * extents of c. Any strides; dtypes may differ between operands; sums are in f32, or in i32 of 8-bit integers. c must
 * share no element with a, b or the bias. Deterministic. The prologue of user code applies to a; its `c` is the index
 * along K. `options` may be NULL. Errors, first call, workspace and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_gemm(kiln_context* context, const kiln_tensor* a, const kiln_tensor* b, const kiln_tensor* c,
                               const kiln_gemm_options* options, kiln_stream stream);

/* Enqueues y = epilogue(alpha * x w^T + beta * y), a fully connected layer: y[n,k] = sum over c of x[n,c] * w[k,c].
 *
 * x: N,C   w: K,C   y: N,K   bias: K. x and w may have up to three more dimensions, the same ones, which count as
 * inputs like C. Any strides. Messages call x a, the transposed w b, and y c, as kiln_gemm() does. If the inputs are
 * not one run in memory, in the same order in x and in w, messages call them x, w and y, and user code is refused.
 * `options` may be NULL. Everything else as for kiln_gemm(). */
KILN_API kiln_status kiln_fully_connected_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w,
                                                  const kiln_tensor* y, const kiln_gemm_options* options,
                                                  kiln_stream stream);

/* The gradients of y = x w^T + b given dy:
 *
 *   dx = alpha * dy w + beta * dx     dw = alpha * dy^T x + beta * dw     db = alpha * (sum of dy over N) + beta * db
 *
 * dy: N,K   x, dx: as x above   w, dw: as w above   db: K. With beta = 1 gradients accumulate over calls. An empty
 * batch gives beta * dw and beta * db. Where inputs are not one run: no dynamic batch, no epilogue with tensors or user
 * code. `options` may be NULL. Everything else as for kiln_gemm() and kiln_conv_backward_bias(). */
KILN_API kiln_status kiln_fully_connected_backward_data(kiln_context* context, const kiln_tensor* dy,
                                                        const kiln_tensor* w, const kiln_tensor* dx,
                                                        const kiln_gemm_options* options, kiln_stream stream);
KILN_API kiln_status kiln_fully_connected_backward_weights(kiln_context* context, const kiln_tensor* x,
                                                           const kiln_tensor* dy, const kiln_tensor* dw,
                                                           const kiln_gemm_options* options, kiln_stream stream);
KILN_API kiln_status kiln_fully_connected_backward_bias(kiln_context* context, const kiln_tensor* dy,
                                                        const kiln_tensor* db, float alpha, float beta,
                                                        kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
