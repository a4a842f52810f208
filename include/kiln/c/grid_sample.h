/* Sampling of images at positions that a grid gives, and its gradients: spatial transformers. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/grid_sample.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_grid_mode;
enum {
  KILN_GRID_LINEAR = 0,
  KILN_GRID_NEAREST = 1, /* The one of even number, of two. */
  KILN_GRID_CUBIC = 2    /* Keys' kernel with a = -3/4; two axes only. */
};

typedef int32_t kiln_grid_padding;
enum {
  KILN_GRID_ZEROS = 0,
  KILN_GRID_BORDER = 1,    /* The nearest elements of x. */
  KILN_GRID_REFLECTION = 2 /* Elements of x, mirrored at its ends. */
};

typedef int32_t kiln_grid_ends;
enum {
  KILN_GRID_EDGES = 0,  /* -1 and 1 are the outer edges of the first and last elements. */
  KILN_GRID_CENTRES = 1 /* Their centres: PyTorch's align_corners=True. */
};

typedef struct kiln_grid_sample_options {
  uint32_t size;
  kiln_grid_mode mode;       /* Default KILN_GRID_LINEAR. */
  kiln_grid_padding padding; /* Default KILN_GRID_ZEROS. */
  kiln_grid_ends ends;       /* Default KILN_GRID_EDGES. */
  float alpha;               /* Default 1. */
  float beta;                /* Default 0: the result is not read. */
  int32_t dynamic_batch;     /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_grid_sample_options;

static inline kiln_grid_sample_options kiln_grid_sample_options_default(void) {
  kiln_grid_sample_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * s + beta * y) on `stream` and returns: s are the elements of x around the positions of
 * the grid, times their weights.
 *
 * x: N,C,H,W   grid: N,P,Q,2, along w and h, -1 to 1 for x   y: N,C,P,Q; 3-D: N,C,D,H,W, N,Z,P,Q,3 (w, h, d) and
 * N,C,Z,P,Q; any strides. y must share no element with the others. Deterministic. `options` may be NULL. Errors, first
 * call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_grid_sample(kiln_context* context, const kiln_tensor* x, const kiln_tensor* grid,
                                      const kiln_tensor* y, const kiln_grid_sample_options* options,
                                      kiln_stream stream);

/* Enqueues dx = epilogue(alpha * d + beta * dx) on `stream` and returns: d is the gradient of kiln_grid_sample() with
 * respect to x.
 *
 * dy: as y there   grid: as there   dx: as x there; any strides. dx must share no element with the others.
 * Deterministic. `options` may be NULL. Errors, first call, workspace and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_grid_sample_backward_data(kiln_context* context, const kiln_tensor* dy,
                                                    const kiln_tensor* grid, const kiln_tensor* dx,
                                                    const kiln_grid_sample_options* options, kiln_stream stream);

/* Enqueues dgrid = epilogue(alpha * d + beta * dgrid) on `stream` and returns: d is the gradient of kiln_grid_sample()
 * with respect to the grid.
 *
 * dy: as y there   x, grid: as there   dgrid: as grid; any strides. dgrid must share no element with the others.
 * Deterministic. `options` may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_grid_sample_backward_grid(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                                    const kiln_tensor* grid, const kiln_tensor* dgrid,
                                                    const kiln_grid_sample_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
