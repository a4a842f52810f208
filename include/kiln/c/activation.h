/* Activation functions, forward and backward. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/activation.txt and the definitions of the operations. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_activation_mode;
enum {
  KILN_ACTIVATION_IDENTITY = 0,      /* x */
  KILN_ACTIVATION_RELU = 1,          /* max(x, 0) */
  KILN_ACTIVATION_CLIPPED_RELU = 2,  /* min(max(x, 0), high) */
  KILN_ACTIVATION_CLIP = 3,          /* min(max(x, low), high) */
  KILN_ACTIVATION_LEAKY_RELU = 4,    /* x, or slope x below 0 */
  KILN_ACTIVATION_SIGMOID = 5,       /* s(x) = 1 / (1 + exp(-x)) */
  KILN_ACTIVATION_TANH = 6,          /* tanh(x) */
  KILN_ACTIVATION_ELU = 7,           /* x, or slope (exp(x) - 1) below 0 */
  KILN_ACTIVATION_SELU = 8,          /* 1.0507 x, or 1.7581 (exp(x) - 1) below 0 */
  KILN_ACTIVATION_SOFTPLUS = 9,      /* log(1 + exp(slope x)) / slope */
  KILN_ACTIVATION_SWISH = 10,        /* x s(slope x) */
  KILN_ACTIVATION_GELU = 11,         /* 0.5 x (1 + erf(x / sqrt(2))) */
  KILN_ACTIVATION_GELU_TANH = 12,    /* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
  KILN_ACTIVATION_HARD_SWISH = 13,   /* x min(max(x + 3, 0), 6) / 6 */
  KILN_ACTIVATION_HARD_SIGMOID = 14, /* min(max(slope x + offset, 0), 1) */
  KILN_ACTIVATION_MISH = 15          /* x tanh(log(1 + exp(x))) */
};

typedef struct kiln_activation_options {
  uint32_t size;
  kiln_activation_mode mode;
  /* The numbers that the mode reads; the others do not matter. Not NaN; slope > 0 for softplus, high >= 0 for
   * clipped_relu, low <= high for clip. */
  float slope, offset, low, high;
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: y (backward: dx) is not read. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_activation_options;

/* The usual numbers of `mode`: leaky_relu slope 0.01; elu, softplus and swish slope 1; hard_sigmoid slope 1/6 and
 * offset 0.5; clipped_relu high 6; clip between the infinities. */
static inline kiln_activation_options kiln_activation_options_default(kiln_activation_mode mode) {
  kiln_activation_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.mode = mode;
  options.alpha = 1;
  if (mode == KILN_ACTIVATION_LEAKY_RELU) options.slope = 0.01f;
  if (mode == KILN_ACTIVATION_ELU || mode == KILN_ACTIVATION_SOFTPLUS || mode == KILN_ACTIVATION_SWISH)
    options.slope = 1;
  if (mode == KILN_ACTIVATION_HARD_SIGMOID) options.slope = 1.0f / 6, options.offset = 0.5f;
  if (mode == KILN_ACTIVATION_CLIPPED_RELU) options.high = 6;
  if (mode == KILN_ACTIVATION_CLIP) options.low = -INFINITY, options.high = INFINITY;
  return options;
}

/* Enqueues y = epilogue(alpha * f(x) + beta * y) on `stream` and returns without waiting.
 *
 * x, y: equal extents of 1 to 5 dimensions, any strides; integers with KILN_ACTIVATION_IDENTITY only. y may be x
 * itself; otherwise they must not overlap. NaN gives NaN. KILN_ACTIVATION_IDENTITY with user code as epilogue is any
 * function of an element. `options` may be NULL: relu. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_activation_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                             const kiln_activation_options* options, kiln_stream stream);

/* Enqueues dx = epilogue(alpha * f'(x) * dy + beta * dx). dx may be dy itself, or x itself. Where f is constant, dx is
 * 0 whatever dy is. */
KILN_API kiln_status kiln_activation_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                              const kiln_tensor* dx, const kiln_activation_options* options,
                                              kiln_stream stream);

/* The same from y = f(x) instead of x, for: identity, relu, clipped_relu, leaky_relu and elu with slopes >= 0, sigmoid,
 * tanh, selu, softplus with slope > 0. KILN_INVALID_ARGUMENT for the others. */
KILN_API kiln_status kiln_activation_backward_from_y(kiln_context* context, const kiln_tensor* y, const kiln_tensor* dy,
                                                     const kiln_tensor* dx, const kiln_activation_options* options,
                                                     kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
