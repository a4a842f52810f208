/* Images at another size, by the nearest element or interpolated, and the gradient. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/resize.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_resize_mode;
enum {
  KILN_RESIZE_NEAREST = 0, /* The element of x that is nearest to the position of one of y. */
  KILN_RESIZE_LINEAR = 1,  /* From two elements along each axis. */
  KILN_RESIZE_CUBIC = 2    /* From four elements along each axis. */
};

/* Where element i of y stands in x, with the scale s = y's extent / x's extent, or the one that is given. */
typedef int32_t kiln_resize_coordinates;
enum {
  KILN_RESIZE_HALF_PIXEL = 0,           /* (i + 1/2) / s - 1/2 */
  KILN_RESIZE_HALF_PIXEL_SYMMETRIC = 1, /* The same; what a given scale leaves over is halved to both ends. */
  KILN_RESIZE_PYTORCH_HALF_PIXEL = 2,   /* KILN_RESIZE_HALF_PIXEL, but 0 where y has an extent of 1. */
  KILN_RESIZE_ALIGN_CORNERS = 3,        /* i (x's extent - 1) / (s * x's extent - 1) */
  KILN_RESIZE_ASYMMETRIC = 4,           /* i / s */
  KILN_RESIZE_TF_HALF_PIXEL_FOR_NN = 5  /* (i + 1/2) / s */
};

typedef int32_t kiln_resize_rounding;
enum {
  KILN_RESIZE_PREFER_FLOOR = 0, /* The nearest; of two, the one before. */
  KILN_RESIZE_PREFER_CEIL = 1,  /* The nearest; of two, the one behind. */
  KILN_RESIZE_FLOOR = 2,
  KILN_RESIZE_CEIL = 3
};

typedef struct kiln_resize_options {
  uint32_t size;
  kiln_resize_mode mode;               /* Default KILN_RESIZE_NEAREST. */
  kiln_resize_coordinates coordinates; /* Default KILN_RESIZE_HALF_PIXEL. */
  kiln_resize_rounding rounding;       /* For KILN_RESIZE_NEAREST. Default KILN_RESIZE_PREFER_FLOOR. */
  int32_t exclude_outside;             /* For KILN_RESIZE_CUBIC: elements outside x do not count. Default 0. */
  float cubic;                         /* For KILN_RESIZE_CUBIC: its coefficient, -1 to 0. Default -0.75. */
  float scale[KILN_MAX_SPATIAL];       /* Scales of the axes in x's order. Default 0: the ratio of the extents. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: the result is not read. */
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
  const kiln_epilogue* epilogue;       /* User code only. Default NULL: none. */
} kiln_resize_options;

static inline kiln_resize_options kiln_resize_options_default(void) {
  kiln_resize_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.cubic = -0.75f;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * resize(x) + beta * y) on `stream` and returns: ONNX's Resize without antialias.
 *
 * x: N,C,H,W   y: N,C,P,Q; 1-D and 3-D likewise. Any strides; floating-point numbers or integers. With a given scale
 * y's extent is x's times the scale, rounded down; it is 1/128 to 128, and taken as the exact fraction that it is.
 * Elements outside x are the nearest of x. Positions are exact, sums in f32. y must not overlap x. `options` may be
 * NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_resize(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                 const kiln_resize_options* options, kiln_stream stream);

/* Enqueues dx = epilogue(alpha * the gradient of kiln_resize() by x + beta * dx) on `stream` and returns: the sum over
 * the elements of y that an element of x is a part of, of dy times its weight.
 *
 * dy: N,C,P,Q   dx: N,C,H,W; 1-D and 3-D likewise. Any strides; floating-point numbers. `options` as kiln_resize() was
 * given them, user code apart; may be NULL. Deterministic. dx must not overlap dy. Errors, first call and threads as
 * for kiln_conv_forward(). */
KILN_API kiln_status kiln_resize_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* dx,
                                          const kiln_resize_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
