/* Tensor functions: copies and conversions, values, element-wise arithmetic. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/tensor_ops.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_transform_options {
  uint32_t size;
  float alpha;                      /* Default 1. */
  float beta;                       /* Default 0: the result is not read. */
  float value;                      /* Value of the padding. Default 0. */
  int64_t pad_begin[KILN_MAX_RANK]; /* Elements before x in each of its dimensions. Default 0. */
  int64_t pad_end[KILN_MAX_RANK];   /* Elements behind it. Default 0. */
  int32_t dynamic_batch;            /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_transform_options;

static inline kiln_transform_options kiln_transform_options_default(void) {
  kiln_transform_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * pad(x) + beta * y) on `stream`: another layout, another dtype, a scale, padding, or all
 * at once. A tensor with the strides of a larger one is a part of it: crop by such an x, concatenate by such a y.
 *
 * x, y: 1 to 5 dimensions of any dtype and strides. y has x's extents plus the padding; where x has an extent of 1 and
 * no padding, y may have any, and x repeats. Computed in f32; results round to nearest, integers saturate, NaN becomes
 * 0 in them; with equal dtypes, alpha 1 and beta 0 the bits are copied. y may be x itself; otherwise they must not
 * overlap. `options` may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_tensor_transform(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                           const kiln_transform_options* options, kiln_stream stream);

/* y = alpha * x + beta * y, where x may repeat along dimensions in which its extent is 1. */
KILN_API kiln_status kiln_tensor_add(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y, float alpha,
                                     float beta, kiln_stream stream);

/* y = alpha * y. */
KILN_API kiln_status kiln_tensor_scale(kiln_context* context, const kiln_tensor* y, float alpha, kiln_stream stream);

/* y = value, rounded to y's dtype. */
KILN_API kiln_status kiln_tensor_set(kiln_context* context, const kiln_tensor* y, float value, kiln_stream stream);

/* y = epilogue(value): what user code makes of it. `epilogue` may be NULL. */
KILN_API kiln_status kiln_tensor_set_with_epilogue(kiln_context* context, const kiln_tensor* y, float value,
                                                   const kiln_epilogue* epilogue, kiln_stream stream);

/* Comparisons and KILN_TENSOR_NOT give 1 or 0. */
typedef int32_t kiln_tensor_op_mode;
enum {
  KILN_TENSOR_ADD = 0,
  KILN_TENSOR_SUB = 1,
  KILN_TENSOR_MUL = 2,
  KILN_TENSOR_DIV = 3,
  KILN_TENSOR_MIN = 4, /* NaN if either is NaN. */
  KILN_TENSOR_MAX = 5, /* The same. */
  KILN_TENSOR_POW = 6,
  KILN_TENSOR_EQ = 7,
  KILN_TENSOR_NE = 8,
  KILN_TENSOR_LT = 9,
  KILN_TENSOR_LE = 10,
  KILN_TENSOR_GT = 11,
  KILN_TENSOR_GE = 12,
  KILN_TENSOR_SQRT = 13, /* Takes a alone, as the modes up to KILN_TENSOR_NOT. */
  KILN_TENSOR_EXP = 14,
  KILN_TENSOR_LOG = 15,
  KILN_TENSOR_ABS = 16,
  KILN_TENSOR_NEG = 17,
  KILN_TENSOR_NOT = 18,   /* a == 0 */
  KILN_TENSOR_SELECT = 19 /* b where a is not 0, else c. */
};

typedef struct kiln_tensor_op_options {
  uint32_t size;
  float alpha;                   /* Default 1. */
  float beta;                    /* Default 0: the result is not read. */
  int32_t dynamic_batch;         /* One kernel for every batch of a power-of-two bucket. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_tensor_op_options;

static inline kiln_tensor_op_options kiln_tensor_op_options_default(void) {
  kiln_tensor_op_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * op(a, b, c) + beta * y) on `stream`. `b` and `c` are NULL where the mode does not read
 * them.
 *
 * Inputs have y's rank, and in each dimension its extent or 1, which repeats. Any dtypes and strides; computed and
 * rounded as by kiln_tensor_transform(). y may be one of the inputs itself. `options` may be NULL. */
KILN_API kiln_status kiln_tensor_op(kiln_context* context, kiln_tensor_op_mode mode, const kiln_tensor* a,
                                    const kiln_tensor* b, const kiln_tensor* c, const kiln_tensor* y,
                                    const kiln_tensor_op_options* options, kiln_stream stream);

/* Inputs of kiln_tensor_op(). */
typedef int32_t kiln_tensor_op_input;
enum { KILN_TENSOR_OP_A = 0, KILN_TENSOR_OP_B = 1, KILN_TENSOR_OP_C = 2 };

typedef struct kiln_tensor_op_backward_options {
  uint32_t size;
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: the result is not read. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket; not where dx repeats along it. */
  const kiln_tensor* a;  /* The input, if the gradient reads it; else NULL. */
  const kiln_tensor* b;
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_tensor_op_backward_options;

static inline kiln_tensor_op_backward_options kiln_tensor_op_backward_options_default(void) {
  kiln_tensor_op_backward_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues dx = epilogue(alpha * g + beta * dx) on `stream`: g is the gradient of kiln_tensor_op() by that input, of
 * which dy is that of y.
 *
 * dy: 1 to 5 dimensions; a, b, dx: in each the extent of dy, or 1, along which inputs repeat and gradients are added
 * up. Reads a: mul and div by b, min, max, pow, select, and functions of one input but neg. Reads b: mul by a, div,
 * min, max, pow. Any strides. dx must not overlap other operands. Deterministic. `options` may be NULL. */
KILN_API kiln_status kiln_tensor_op_backward(kiln_context* context, kiln_tensor_op_mode mode,
                                             kiln_tensor_op_input input, const kiln_tensor* dy, const kiln_tensor* dx,
                                             const kiln_tensor_op_backward_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
