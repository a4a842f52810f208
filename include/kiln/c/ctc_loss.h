/* CTC loss: connectionist temporal classification, and its gradient. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/ctc_loss.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_ctc_input;
enum {
  KILN_CTC_SCORES = 0, /* Their softmax over the classes is the probabilities. */
  KILN_CTC_LOG_PROBABILITIES = 1
};

typedef int32_t kiln_ctc_infinite;
enum {
  KILN_CTC_INFINITE_KEEP = 0,
  /* Losses that are infinite, of too few steps for the labels, become 0, and so do their gradients. */
  KILN_CTC_INFINITE_ZERO = 1
};

/* Tensors that are not wanted are NULL, which is their default. */
typedef struct kiln_ctc_loss_options {
  uint32_t size;
  kiln_ctc_input input;              /* Meaning of the numbers in x. */
  kiln_ctc_infinite infinite;        /* Default KILN_CTC_INFINITE_KEEP. */
  float alpha;                       /* Default 1. */
  float beta;                        /* Default 0: the result is not read. */
  int32_t dynamic_batch;             /* One kernel for every batch of a power-of-two bucket. */
  int64_t blank;                     /* The class that stands for no label. Default 0. */
  const kiln_tensor* input_lengths;  /* i32, N: the steps of each image. Default NULL: all. */
  const kiln_tensor* target_lengths; /* i32, N: the labels of each image. Default NULL: all. */
  const kiln_tensor* prefixes;       /* Output, f32, N,T,2L+1: what kiln_ctc_loss_backward() needs. */
  const kiln_epilogue* epilogue;     /* User code only. Default NULL: none. */
} kiln_ctc_loss_options;

static inline kiln_ctc_loss_options kiln_ctc_loss_options_default(void) {
  kiln_ctc_loss_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues loss = epilogue(alpha * l + beta * loss) on `stream` and returns: l is -log of the probability of all paths
 * of classes, one a step, that become an image's labels when equal neighbours are merged and blanks left out.
 *
 * x: N,T,C (images, steps, classes)   targets: i32, N,L, none of them the blank   loss: N; any strides. A loss is
 * infinite where there are too few steps for the labels, and NaN where a label that counts is no class. Outputs must
 * share no element with other operands. Deterministic. `options` may be NULL. Errors, first call, workspace and threads
 * as for kiln_conv_forward(). */
KILN_API kiln_status kiln_ctc_loss_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                           const kiln_tensor* loss, const kiln_ctc_loss_options* options,
                                           kiln_stream stream);

/* Tensors that are not wanted are NULL, which is their default. */
typedef struct kiln_ctc_loss_backward_options {
  uint32_t size;
  kiln_ctc_input input; /* As in the forward, as are infinite, blank and the lengths. */
  kiln_ctc_infinite infinite;
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: the result is not read. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket. */
  int64_t blank;
  const kiln_tensor* input_lengths;
  const kiln_tensor* target_lengths;
  const kiln_tensor* dloss;      /* N: the gradient of loss. Default NULL: 1. */
  const kiln_epilogue* epilogue; /* For dx; user code only. Default NULL: none. */
} kiln_ctc_loss_backward_options;

static inline kiln_ctc_loss_backward_options kiln_ctc_loss_backward_options_default(void) {
  kiln_ctc_loss_backward_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues dx = epilogue(alpha * d + beta * dx) on `stream` and returns: d is the gradient of kiln_ctc_loss_forward()
 * with respect to the scores, also where x holds logarithms of probabilities.
 *
 * x, targets: as in the forward   prefixes: as it gave them   dx: N,T,C; any strides. dx is 0 behind the steps that
 * count, and NaN where the loss is infinite and not made 0. Outputs must share no element with other operands.
 * Deterministic. `options` may be NULL. Errors, first call, workspace and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_ctc_loss_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                            const kiln_tensor* prefixes, const kiln_tensor* dx,
                                            const kiln_ctc_loss_backward_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
