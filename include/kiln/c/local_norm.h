/* Local response normalisation (LRN), divisive normalisation (LCN), and their gradients. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/local_norm.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_local_norm_options {
  uint32_t size;
  float lrn_alpha;          /* At least 0; divided by the elements of the window. Default 1e-4. */
  float lrn_beta;           /* Above 0. Default 0.75. */
  float lrn_k;              /* Above 0. Default 2. */
  int64_t window;           /* Elements of the window along each axis. Default 5. */
  const kiln_tensor* means; /* As x: what the squares are of differences from; NULL (the default): 0. */
  /* Gradients only: output, as x, the gradient by means; NULL (the default): not computed. */
  const kiln_tensor* dmeans;
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: the result is not read. */
  float dmeans_alpha;    /* As alpha and beta, of dmeans. Default 1. */
  float dmeans_beta;     /* Default 0. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_epilogue* epilogue; /* For y (gradients: dx); user code only. Default NULL: none. */
} kiln_local_norm_options;

static inline kiln_local_norm_options kiln_local_norm_options_default(void) {
  kiln_local_norm_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.lrn_alpha = 1e-4f;
  options.lrn_beta = 0.75f;
  options.lrn_k = 2;
  options.window = 5;
  options.alpha = 1;
  options.dmeans_alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * x s^-lrn_beta + beta * y) on `stream` and returns: s is lrn_k + lrn_alpha / window *
 * the sum of the squares in the window, which goes from c - floor((window - 1) / 2) to c + floor(window / 2) along the
 * channels: as in cuDNN and ONNX.
 *
 * x, y: N,C and up to three spatial dimensions, any strides. They must share no element. Deterministic. `options` may
 * be NULL. dmeans must be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_lrn_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                      const kiln_local_norm_options* options, kiln_stream stream);

/* Enqueues dx = epilogue(alpha * g + beta * dx) on `stream`, and dmeans if given; g is the gradient with respect to x
 * of kiln_lrn_forward() with the same options but no epilogue. Both are made of x and dy; outputs must not overlap
 * anything else. */
KILN_API kiln_status kiln_lrn_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                       const kiln_tensor* dx, const kiln_local_norm_options* options,
                                       kiln_stream stream);

/* The same with windows over all spatial dimensions, of which x has one to three: cuDNN's divisive normalisation. The
 * means count in the sum of squares of x - means only; x itself is divided. lrn_alpha is divided by window^(spatial
 * dimensions). */
KILN_API kiln_status kiln_lcn_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                      const kiln_local_norm_options* options, kiln_stream stream);
KILN_API kiln_status kiln_lcn_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                       const kiln_tensor* dx, const kiln_local_norm_options* options,
                                       kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
