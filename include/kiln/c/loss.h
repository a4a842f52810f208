/* Losses: cross entropy of softmax, forward and backward. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/loss.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_loss_reduction;
enum {
  KILN_LOSS_NONE = 0, /* One loss a row. */
  KILN_LOSS_MEAN = 1, /* Their sum over the number of rows that count, or the weights of their targets. */
  KILN_LOSS_SUM = 2
};

typedef struct kiln_cross_entropy_options {
  uint32_t size;
  kiln_loss_reduction reduction; /* Default KILN_LOSS_MEAN. */
  int64_t ignore;                /* The target of rows that do not count. Default -100. */
  float alpha;                   /* Default 1. */
  float beta;                    /* Default 0: the result is not read. */
  int32_t dynamic_batch;         /* One kernel for every batch of a power-of-two bucket. */
  float smoothing;               /* The part of a target that all classes share: 0 (default) to 1. */
  const kiln_tensor* weights;    /* f32, C: of the classes. Default NULL: 1. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_cross_entropy_options;

static inline kiln_cross_entropy_options kiln_cross_entropy_options_default(void) {
  kiln_cross_entropy_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.reduction = KILN_LOSS_MEAN;
  options.ignore = -100;
  options.alpha = 1;
  return options;
}

/* Enqueues loss = epilogue(alpha * cross_entropy(softmax(x), targets) + beta * loss) on `stream` and returns.
 *
 * x: logits N,C and up to three spatial dimensions   targets: i32, the extents of x without C   loss: with
 * KILN_LOSS_NONE as targets, else 1 element. A row's loss is log(sum over c of exp(x[c])) - x[target]; 0 where the
 * target is `ignore`, NaN for any other target that is no class. Weights and smoothing are those of
 * torch.nn.functional.cross_entropy. Any strides. loss must share no element with x, targets or weights. Deterministic.
 * `options` may be NULL. Errors, first call, workspace and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_cross_entropy_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                                const kiln_tensor* loss, const kiln_cross_entropy_options* options,
                                                kiln_stream stream);

/* Enqueues dx = epilogue(alpha * g + beta * dx); g is the gradient with respect to x of kiln_cross_entropy_forward()
 * without its epilogue: dloss * (softmax(x)[c] - (c == target)), for the mean over its divisor.
 *
 * x, targets: as there   dloss: as loss there, or NULL: 1   dx: the extents of x. dx may be x itself; otherwise it must
 * share no element with the others. Deterministic. `options` may be NULL. Errors, first call, workspace and threads as
 * for kiln_conv_forward(). */
KILN_API kiln_status kiln_cross_entropy_backward(kiln_context* context, const kiln_tensor* x,
                                                 const kiln_tensor* targets, const kiln_tensor* dloss,
                                                 const kiln_tensor* dx, const kiln_cross_entropy_options* options,
                                                 kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
