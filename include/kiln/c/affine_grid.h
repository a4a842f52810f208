/* Positions of affine maps for kiln_grid_sample(), and their gradient: spatial transformers. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/affine_grid.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"
#include "kiln/c/grid_sample.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_affine_grid_options {
  uint32_t size;
  kiln_grid_ends ends;   /* Default KILN_GRID_EDGES. */
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: the result is not read. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_affine_grid_options;

static inline kiln_affine_grid_options kiln_affine_grid_options_default(void) {
  kiln_affine_grid_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues grid = epilogue(alpha * g + beta * grid) on `stream` and returns: g are the positions to which the affine
 * map `theta` of an image moves those of its pixels.
 *
 * theta: N,2,3   grid: N,P,Q,2, along w and h; 3-D: N,3,4 and N,Z,P,Q,3 (w, h, d); any strides. grid must share no
 * element with theta. Deterministic. `options` may be NULL. Errors, first call and threads as for
 * kiln_conv_forward(). */
KILN_API kiln_status kiln_affine_grid(kiln_context* context, const kiln_tensor* theta, const kiln_tensor* grid,
                                      const kiln_affine_grid_options* options, kiln_stream stream);

/* Enqueues dtheta = epilogue(alpha * d + beta * dtheta) on `stream` and returns: d is the gradient of
 * kiln_affine_grid() with respect to theta.
 *
 * dgrid: as grid there   dtheta: as theta there; any strides. dtheta must share no element with dgrid. Deterministic.
 * `options` may be NULL. Errors, first call, workspace and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_affine_grid_backward(kiln_context* context, const kiln_tensor* dgrid,
                                               const kiln_tensor* dtheta, const kiln_affine_grid_options* options,
                                               kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
