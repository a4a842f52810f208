/* Reductions: one value of all elements along some dimensions, and their gradients. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/reduce.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reductions; in brackets the result of no elements. */
typedef int32_t kiln_reduce_mode;
enum {
  KILN_REDUCE_ADD = 0,         /* Their sum (0). */
  KILN_REDUCE_MUL = 1,         /* Their product (1). */
  KILN_REDUCE_MIN = 2,         /* The least; NaN if one is NaN (+inf). */
  KILN_REDUCE_MAX = 3,         /* The same (-inf). */
  KILN_REDUCE_AMAX = 4,        /* The largest magnitude; NaN if one is NaN (0). */
  KILN_REDUCE_MEAN = 5,        /* Their sum over their number (0). */
  KILN_REDUCE_NORM1 = 6,       /* The sum of their magnitudes (0). */
  KILN_REDUCE_NORM2 = 7,       /* The root of the sum of their squares (0). */
  KILN_REDUCE_MUL_NO_ZEROS = 8 /* The product of those that are not 0 (1). */
};

typedef struct kiln_reduce_options {
  uint32_t size;
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: the result is not read. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket; the batch is not reduced then. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_reduce_options;

static inline kiln_reduce_options kiln_reduce_options_default(void) {
  kiln_reduce_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * reduce(x) + beta * y) on `stream` and returns: `mode` combines the elements of x along
 * every dimension in which y has an extent of 1.
 *
 * x: 1 to 5 dimensions; y: in each the extent of x, or 1. Any dtypes and strides; sums are in f32, integers saturate.
 * indices: NULL, or for min, max and amax as y, i32: where among the reduced dimensions, in logical order, the element
 * stands; of equal ones the first, of NaNs the first; -1 where there is none. Outputs must not overlap x or one
 * another. Deterministic. `options` may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_reduce(kiln_context* context, kiln_reduce_mode mode, const kiln_tensor* x,
                                 const kiln_tensor* y, const kiln_tensor* indices, const kiln_reduce_options* options,
                                 kiln_stream stream);

typedef struct kiln_reduce_backward_options {
  uint32_t size;
  float alpha;                /* Default 1. */
  float beta;                 /* Default 0: the result is not read. */
  int32_t dynamic_batch;      /* One kernel for every batch of a power-of-two bucket; the batch is not reduced then. */
  const kiln_tensor* x;       /* For mul, mul_no_zeros, norm1, norm2 and amax: what was reduced; else NULL. */
  const kiln_tensor* y;       /* For mul, mul_no_zeros and norm2: the result; else NULL. */
  const kiln_tensor* indices; /* For min, max and amax: the positions that kiln_reduce() wrote; else NULL. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_reduce_backward_options;

static inline kiln_reduce_backward_options kiln_reduce_backward_options_default(void) {
  kiln_reduce_backward_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues dx = epilogue(alpha * g + beta * dx) on `stream` and returns: g is the gradient of kiln_reduce() by x, of
 * which dy is that of y.
 *
 * dx: 1 to 5 dimensions; dy, y, indices: in each the extent of dx, or 1; x: extents of dx. Any strides. With min, max
 * and amax the gradient is that of the element that was picked. With mul an element that is 0 gets the product of the
 * row's others. dx must not overlap other operands. Deterministic. `options` may be NULL. Errors, first call and
 * threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_reduce_backward(kiln_context* context, kiln_reduce_mode mode, const kiln_tensor* dy,
                                          const kiln_tensor* dx, const kiln_reduce_backward_options* options,
                                          kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
